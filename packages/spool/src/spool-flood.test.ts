import { existsSync, readdirSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createNames } from './names.ts'
import { post } from './post.ts'
import { createRig, putFile, startChild, temporaryFolder, until } from './testing/rig.ts'

const first = 1_700_000_000_000
const numbered = (count: number) => Array.from({ length: count }, (_, i) => `${first + i}-x.json`)

describe('under a flood of files, the spool', () => {
  it('loses none of forty thousand files of two processes while its own process is blocked for a second', async () => {
    let blocked = false
    const { spool, inbox, names, delivered } = createRig({
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
    await until(() => delivered.length >= 40_000)
    for (const id of ['a', 'b']) expect(new Set(names(id)).size).toBe(20_000)
    for (const path of inboxes) expect(readdirSync(path)).toEqual(['.tmp'])
  })

  it('delivers one file of an inbox before twenty thousand of another are done', async () => {
    let before = 0
    let own = ''
    const { spool, inbox, delivered } = createRig({
      consume(files, spool) {
        spool.discard(files)
        if (own !== '' || delivered.length < 5000) return
        own = post(b, '{}')
        // As if the file had arrived with the first one of this batch.
        before = delivered.length - files.length
      },
    })
    const [a = ''] = inbox('a', 'messages')
    const [b = ''] = inbox('b', 'messages')
    for (const name of numbered(20_000)) putFile(a, name)
    await spool.start()
    expect(delivered).toHaveLength(20_001)
    const waited = delivered.findIndex(({ name }) => name === own) - before
    expect(waited).toBeGreaterThanOrEqual(0)
    expect(waited).toBeLessThanOrEqual(50)
  })

  it('keeps the order of ten thousand posts', async () => {
    const { spool, inbox, delivered } = createRig()
    const [messages = ''] = inbox('a', 'messages')
    const names = createNames()
    const posted = Array.from({ length: 10_000 }, names)
    for (const name of posted) putFile(messages, name)
    await spool.start()
    expect(delivered.map(({ name }) => name)).toEqual(posted)
  })

  it('starts even if files arrive faster than they are consumed', async () => {
    const { spool, inbox, delivered } = createRig({
      async consume(files, spool) {
        // The consumer is slower than the flood.
        for (const name of numbered(files.length + 100)) putFile(messages, `${delivered.length}${name}`)
        spool.discard(files)
      },
    })
    const [messages = ''] = inbox('a', 'messages')
    for (const name of numbered(200)) putFile(messages, name)
    await spool.start()
    expect(delivered.length).toBeGreaterThanOrEqual(200)
  })

  it('serves other inboxes while one causes endless events', async () => {
    let blocked = false
    const { spool, inbox, names, kinds, reports } = createRig({
      consume(files, spool) {
        spool.discard(files)
        if (blocked || !existsSync(join(a, 'b.tmp'))) return
        blocked = true
        // Lets the kernel's queue fill up, so that events are still added while it is read.
        const end = performance.now() + 300
        while (performance.now() < end);
      },
    })
    const [a = ''] = inbox('a', 'messages')
    const [b = ''] = inbox('b', 'messages')
    await spool.start()
    for (let i = 0; i < 2; i++) startChild(['flood', a]).output.catch(() => 'it is killed')
    await until(() => existsSync(join(a, 'b.tmp')))
    for (let i = 1; i <= 100; i++) {
      post(b, '{}')
      await until(() => names('b').length === i)
    }
    await until(() => kinds('a').includes('too_many_events'))
    post(a, '{}')
    await until(() => names('a').length === 1)
    expect(reports).toContainEqual(expect.objectContaining({ kind: 'mode', inbox: 'a', mode: 'polling' }))
    expect(kinds('b')).toEqual([])
    expect(spool.mode('b')).toBe('events')
  })

  it('serves all inboxes if one directory is full of temporary files', async () => {
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

  it('is not delayed by files that are removed before they are claimed', async () => {
    const { spool, inbox, delivered, names } = createRig({
      consume(files, spool) {
        spool.discard(files)
        for (const name of readdirSync(messages))
          if (name.endsWith('-x.json')) unlinkSync(join(messages, name))
      },
    })
    const [messages = ''] = inbox('a', 'messages')
    for (const name of numbered(3000)) putFile(messages, name)
    await spool.start()
    expect(delivered.length).toBeLessThan(200)
    const later = post(messages, '{}')
    await until(() => names().includes(later))
  })

  it('stays below the limit of open files with many directories', async () => {
    const child = startChild(['manyInboxes', temporaryFolder(), '400'], {
      under: ['sh', '-c', 'ulimit -n 128 && exec "$@"', 'sh'],
    })
    expect(JSON.parse(await child.output)).toEqual({ delivered: 400, kinds: [] })
  })
})
