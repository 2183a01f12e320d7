import { existsSync, readdirSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createNames } from './names.ts'
import { post } from './post.ts'
import { createRig, drop, startChild, temporaryFolder, until } from './rig.ts'

const first = 1_700_000_000_000
const numbered = (count: number) => Array.from({ length: count }, (_, i) => `${first + i}-x.json`)

describe('with more files than it can take at once, the spool', () => {
  it('loses none of forty thousand files of two processes while its own does nothing for a second', async () => {
    let blocked = false
    const { spool, inbox, names, handed } = createRig({
      consume(files, spool) {
        spool.discard(files)
        if (blocked) return
        blocked = true
        const end = performance.now() + 1000
        while (performance.now() < end);
      },
    })
    const inboxes = ['a', 'b'].map(id => inbox(id, 'messages')[0] ?? '')
    await spool.start()
    const writers = inboxes.map(path => startChild(['post', '20000', path]))
    await Promise.all(writers.map(({ output }) => output))
    await until(() => handed.length >= 40_000)
    for (const id of ['a', 'b']) expect(new Set(names(id)).size).toBe(20_000)
    for (const path of inboxes) expect(readdirSync(path)).toEqual(['.tmp'])
  })

  it('lets one file of an inbox not wait for twenty thousand of another', async () => {
    let before = 0
    let own = ''
    const { spool, inbox, handed } = createRig({
      consume(files, spool) {
        spool.discard(files)
        if (own !== '' || handed.length < 5000) return
        own = post(b, '{}')
        // As if it had come with the first of this batch.
        before = handed.length - files.length
      },
    })
    const [a = ''] = inbox('a', 'messages')
    const [b = ''] = inbox('b', 'messages')
    for (const name of numbered(20_000)) drop(a, name)
    await spool.start()
    expect(handed).toHaveLength(20_001)
    const waited = handed.findIndex(({ name }) => name === own) - before
    expect(waited).toBeGreaterThanOrEqual(0)
    expect(waited).toBeLessThanOrEqual(50)
  })

  it('keeps the order of ten thousand posts', async () => {
    const { spool, inbox, handed } = createRig()
    const [messages = ''] = inbox('a', 'messages')
    const names = createNames()
    const posted = Array.from({ length: 10_000 }, names)
    for (const name of posted) drop(messages, name)
    await spool.start()
    expect(handed.map(({ name }) => name)).toEqual(posted)
  })

  it('starts though a flood comes in faster than it is taken', async () => {
    const { spool, inbox, handed } = createRig({
      async consume(files, spool) {
        // Slower than the flood.
        for (const name of numbered(files.length + 100)) drop(messages, `${handed.length}${name}`)
        spool.discard(files)
      },
    })
    const [messages = ''] = inbox('a', 'messages')
    for (const name of numbered(200)) drop(messages, name)
    await spool.start()
    expect(handed.length).toBeGreaterThanOrEqual(200)
  })

  it('serves the others while one rings without end', async () => {
    let blocked = false
    const { spool, inbox, names, kinds, reports } = createRig({
      consume(files, spool) {
        spool.discard(files)
        if (blocked || !existsSync(join(a, 'b.tmp'))) return
        blocked = true
        // Time for the kernel's queue to fill, so that it is still being filled when it is read.
        const end = performance.now() + 300
        while (performance.now() < end);
      },
    })
    const [a = ''] = inbox('a', 'messages')
    const [b = ''] = inbox('b', 'messages')
    await spool.start()
    for (let i = 0; i < 2; i++) startChild(['noise', a]).output.catch(() => 'it is killed')
    await until(() => existsSync(join(a, 'b.tmp')))
    for (let i = 1; i <= 100; i++) {
      post(b, '{}')
      await until(() => names('b').length === i)
    }
    await until(() => kinds('a').includes('noisy'))
    post(a, '{}')
    await until(() => names('a').length === 1)
    expect(reports).toContainEqual(expect.objectContaining({ kind: 'mode', inbox: 'a', mode: 'polling' }))
    expect(kinds('b')).toEqual([])
    expect(spool.mode('b')).toBe('events')
  })

  it('serves the others, and the inbox itself, where a directory is full of litter', async () => {
    const { spool, inbox, names } = createRig()
    const [a = ''] = inbox('a', 'messages')
    const [b = ''] = inbox('b', 'messages')
    for (let i = 0; i < 5000; i++) writeFileSync(join(a, `${first + i}-000000-deadbeef.json.tmp`), '')
    await spool.start()
    for (let i = 1; i <= 20; i++) {
      post(a, '{}')
      post(b, '{}')
      await until(() => names('b').length === i)
    }
    await until(() => names('a').length === 20)
    expect(names('a').toSorted()).toEqual(names('a'))
  })

  it('is not held up by files that are gone when their turn comes', async () => {
    const { spool, inbox, handed, names } = createRig({
      consume(files, spool) {
        spool.discard(files)
        for (const name of readdirSync(messages))
          if (name.endsWith('-x.json')) unlinkSync(join(messages, name))
      },
    })
    const [messages = ''] = inbox('a', 'messages')
    for (const name of numbered(3000)) drop(messages, name)
    await spool.start()
    expect(handed.length).toBeLessThan(200)
    const later = post(messages, '{}')
    await until(() => names().includes(later))
  })

  it('opens no more directories at a time than it may, however many there are', async () => {
    const child = startChild(['manyInboxes', temporaryFolder(), '400'], {
      under: ['sh', '-c', 'ulimit -n 128 && exec "$@"', 'sh'],
    })
    expect(JSON.parse(await child.output)).toEqual({ handed: 400, kinds: [] })
  })
})
