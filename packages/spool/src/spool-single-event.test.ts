import { mkdirSync, renameSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { post } from './post.ts'
import { createRig, putFile, run, startChild, temporaryFolder, until } from './testing/rig.ts'

const first = 1_700_000_000_000
const eventLoopTurn = () => new Promise<void>(resolve => setImmediate(resolve))

/** A rig that records, in order, when a directory was listed and when a file was claimed. */
function createStepRig() {
  const steps: string[] = []
  const rig = createRig({ fault: step => void steps.push(step) })
  /** posts one file while the spool is idle; returns the first step taken for it */
  const firstStepAfter = async (directory: string) => {
    // Wait for the scan that follows the previous file.
    while (rig.spool.busy()) await eventLoopTurn()
    await eventLoopTurn()
    steps.length = 0
    const expected = rig.delivered.length + 1
    post(directory, '{}')
    await until(() => rig.delivered.length === expected)
    return steps[0]
  }
  return { ...rig, steps, firstStepAfter }
}

describe('a single event', () => {
  it('has its file claimed before the scan, which follows', async () => {
    const { spool, inbox, steps, firstStepAfter } = createStepRig()
    const [messages = ''] = inbox('a', 'messages', 'tasks')
    await spool.start()
    const seen: unknown[] = []
    for (let i = 0; i < 20; i++) {
      seen.push(await firstStepAfter(messages))
      while (spool.busy()) await eventLoopTurn()
      expect(steps).toContain('listed')
    }
    // If a sweep is due at the same moment, the scan comes first: on a busy machine mostly.
    expect(seen).toContain('claimed')
  })

  it('is not trusted after a burst of events, in any directory, until the next scan', async () => {
    const { spool, inbox, firstStepAfter } = createStepRig()
    const [messages = '', tasks = ''] = inbox('a', 'messages', 'tasks')
    await spool.start()
    for (let round = 0; round < 5; round++) {
      for (let i = 0; i < 300; i++) writeFileSync(join(tasks, `${i}.tmp`), 'x')
      // Let the spool see the burst first.
      await eventLoopTurn()
      await eventLoopTurn()
      expect(await firstStepAfter(messages)).toBe('listed')
    }
    const seen: unknown[] = []
    for (let i = 0; i < 20; i++) seen.push(await firstStepAfter(messages))
    expect(seen).toContain('claimed')
  })

  it('does not let its file overtake others that arrived with it', async () => {
    const { spool, inbox, names } = createRig()
    const [messages = '', tasks = ''] = inbox('a', 'messages', 'tasks')
    await spool.start()
    const expected: string[] = []
    for (let i = 0; i < 100; i++) {
      const earlier = `${first + 2 * i}-x.json`
      const later = `${first + 2 * i + 1}-x.json`
      putFile(i % 2 ? messages : tasks, later)
      putFile(messages, earlier)
      expected.push(earlier, later)
      await until(() => names().length === expected.length)
    }
    expect(names()).toEqual(expected)
  })

  it('is recognized again for a name that was just claimed', async () => {
    let left = 300
    const { spool, inbox, delivered } = createRig({
      consume(files, spool) {
        spool.discard(files)
        if (left-- > 0) putFile(messages, 'same.json', String(left))
      },
    })
    const [messages = ''] = inbox('a', 'messages')
    await spool.start()
    putFile(messages, 'same.json', 'first')
    await until(() => delivered.length === 301)
    expect(delivered.map(({ text }) => text).slice(1)).toEqual(
      Array.from({ length: 300 }, (_, i) => String(299 - i)),
    )
  })

  it('may be for a file that was removed or replaced', async () => {
    const { spool, inbox, delivered, names, kinds } = createRig({
      consume: (files, spool) => spool.discard(files.filter(({ problem }) => !problem)),
    })
    const [messages = ''] = inbox('a', 'messages')
    const elsewhere = temporaryFolder()
    putFile(elsewhere, 'secret.json', 'secret')
    await spool.start()
    for (let i = 0; i < 50; i++) {
      const path = join(messages, `${first + i}-x.json`)
      writeFileSync(path, '{}')
      unlinkSync(path)
      if (i % 5 === 1) symlinkSync(join(elsewhere, 'secret.json'), path)
      if (i % 5 === 2) run('mkfifo', path)
      if (i % 5 === 3) mkdirSync(path)
      await eventLoopTurn()
    }
    const last = post(messages, '{}')
    await until(() => names().includes(last))
    await until(() => delivered.filter(({ problem }) => problem === 'not_a_file').length === 30)
    expect(delivered.every(({ text }) => text !== 'secret')).toBe(true)
    expect(kinds()).toEqual([])
  })

  it('of a directory that was replaced leads to the new directory', async () => {
    const { spool, inbox, names } = createRig()
    const [messages = ''] = inbox('a', 'messages')
    await spool.start()
    for (let i = 0; i < 20; i++) {
      putFile(messages, `${first + i}-old.json`)
      renameSync(messages, `${messages}-${i}`)
      mkdirSync(messages)
      putFile(messages, `${first + i}-new.json`)
      await until(() => names().includes(`${first + i}-new.json`))
    }
  })

  it.each([1, 2, 3])('keeps the order of a writer that pauses at random, in %i directories', async count => {
    const { spool, inbox, delivered } = createRig()
    const directories = inbox('a', ...['messages', 'tasks', 'groups'].slice(0, count))
    await spool.start()
    await startChild(['postWithPauses', '1500', ...directories]).output
    await until(() => delivered.length === 1500)
    expect(delivered.map(({ text }) => JSON.parse(text).i)).toEqual(Array.from({ length: 1500 }, (_, i) => i))
  })
})
