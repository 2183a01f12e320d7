import { mkdirSync, renameSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { post } from './post.ts'
import { createRig, drop, run, startChild, temporaryFolder, until } from './rig.ts'

const first = 1_700_000_000_000
const eventLoopTurn = () => new Promise<void>(resolve => setImmediate(resolve))

/** A rig that remembers, in order, when a directory was listed and when a file was claimed. */
function createStepRig() {
  const steps: string[] = []
  const rig = createRig({ fault: step => void steps.push(step) })
  /** posts one file into silence; the first step that is taken for it */
  const stepAfter = async (directory: string) => {
    // Until the look that follows the file before is over.
    while (rig.spool.busy()) await eventLoopTurn()
    await eventLoopTurn()
    steps.length = 0
    const expected = rig.handed.length + 1
    post(directory, '{}')
    await until(() => rig.handed.length === expected)
    return steps[0]
  }
  return { ...rig, steps, stepAfter }
}

describe('a lone ring', () => {
  it('has its file taken without a look, which follows', async () => {
    const { spool, inbox, steps, stepAfter } = createStepRig()
    const [messages = ''] = inbox('a', 'messages', 'tasks')
    await spool.start()
    const seen: unknown[] = []
    for (let i = 0; i < 20; i++) {
      seen.push(await stepAfter(messages))
      while (spool.busy()) await eventLoopTurn()
      expect(steps).toContain('listed')
    }
    // A sweep may be due in the same moment, and looks first.
    expect(seen.filter(step => step === 'claimed').length).toBeGreaterThan(10)
  })

  it('is not believed where rings may be missing, in none of the directories, before the next look', async () => {
    const { spool, inbox, stepAfter } = createStepRig()
    const [messages = '', tasks = ''] = inbox('a', 'messages', 'tasks')
    await spool.start()
    for (let round = 0; round < 5; round++) {
      for (let i = 0; i < 300; i++) writeFileSync(join(tasks, `${i}.tmp`), 'x')
      // A file that came with so many is noticed, too.
      await eventLoopTurn()
      await eventLoopTurn()
      expect(await stepAfter(messages)).toBe('listed')
    }
    const seen: unknown[] = []
    for (let i = 0; i < 20; i++) seen.push(await stepAfter(messages))
    expect(seen.filter(step => step === 'claimed').length).toBeGreaterThan(10)
  })

  it('does not let its file overtake others that rang with it', async () => {
    const { spool, inbox, names } = createRig()
    const [messages = '', tasks = ''] = inbox('a', 'messages', 'tasks')
    await spool.start()
    const expected: string[] = []
    for (let i = 0; i < 100; i++) {
      const earlier = `${first + 2 * i}-x.json`
      const later = `${first + 2 * i + 1}-x.json`
      drop(i % 2 ? messages : tasks, later)
      drop(messages, earlier)
      expected.push(earlier, later)
      await until(() => names().length === expected.length)
    }
    expect(names()).toEqual(expected)
  })

  it('is heard again for a name that was just taken', async () => {
    let left = 300
    const { spool, inbox, handed } = createRig({
      consume(files, spool) {
        spool.discard(files)
        if (left-- > 0) drop(messages, 'same.json', String(left))
      },
    })
    const [messages = ''] = inbox('a', 'messages')
    await spool.start()
    drop(messages, 'same.json', 'first')
    await until(() => handed.length === 301)
    expect(handed.map(({ text }) => text).slice(1)).toEqual(
      Array.from({ length: 300 }, (_, i) => String(299 - i)),
    )
  })

  it('may be for a file that was taken back, or became something else', async () => {
    const { spool, inbox, handed, names, kinds } = createRig({
      consume: (files, spool) => spool.discard(files.filter(({ problem }) => !problem)),
    })
    const [messages = ''] = inbox('a', 'messages')
    const elsewhere = temporaryFolder()
    drop(elsewhere, 'secret.json', 'secret')
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
    await until(() => handed.filter(({ problem }) => problem === 'not_a_file').length === 30)
    expect(handed.every(({ text }) => text !== 'secret')).toBe(true)
    expect(kinds()).toEqual([])
  })

  it('of a directory that another one has taken the place of leads to the other', async () => {
    const { spool, inbox, names } = createRig()
    const [messages = ''] = inbox('a', 'messages')
    await spool.start()
    for (let i = 0; i < 20; i++) {
      drop(messages, `${first + i}-old.json`)
      renameSync(messages, `${messages}-${i}`)
      mkdirSync(messages)
      drop(messages, `${first + i}-new.json`)
      await until(() => names().includes(`${first + i}-new.json`))
    }
  })

  it.each([1, 2, 3])('keeps the order of a writer at its own pace, in %i directories', async count => {
    const { spool, inbox, handed } = createRig()
    const directories = inbox('a', ...['messages', 'tasks', 'groups'].slice(0, count))
    await spool.start()
    await startChild(['amble', '1500', ...directories]).output
    await until(() => handed.length === 1500)
    expect(handed.map(({ text }) => JSON.parse(text).i)).toEqual(Array.from({ length: 1500 }, (_, i) => i))
  })
})
