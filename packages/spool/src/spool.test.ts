import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { createNames } from './names.ts'
import { post } from './post.ts'
import { createRig, putFile, startChild, until } from './testing/rig.ts'
import type { ClaimedFile } from './types.ts'

const first = 1_700_000_000_000
const numbered = (count: number) => Array.from({ length: count }, (_, i) => `${first + i}-x.json`)
const numberIn = (file: ClaimedFile): number => JSON.parse(file.text).i
const rising = (count: number) => Array.from({ length: count }, (_, i) => i)

describe.each(['auto', 'off'] as const)('with events %s, the spool', events => {
  it('reports its watch mode', async () => {
    const { spool, inbox } = createRig({ events })
    inbox('a', 'messages')
    await spool.start()
    expect(spool.mode('a')).toBe(events === 'auto' ? 'events' : 'polling')
    expect(spool.mode('nobody')).toBeUndefined()
  })

  it('delivers files that were waiting before the start, and files that come later', async () => {
    const { spool, inbox, names, claimedFiles } = createRig({ events })
    const [messages = '', tasks = ''] = inbox('a', 'messages', 'tasks')
    for (const name of numbered(700)) putFile(messages, name)
    putFile(tasks, `${first}-task.json`)
    const now = post(tasks, '{}')
    await spool.start()
    expect(names()).toHaveLength(702)
    expect(names()).toContain(now)
    const later = post(tasks, '{}')
    await until(() => names().includes(later))
    await spool.stop()
    expect(claimedFiles()).toEqual([])
    expect(readdirSync(messages)).toEqual([])
  })

  it('starts without inboxes, and serves them from add to remove', async () => {
    const { spool, inbox, names } = createRig({ events })
    await spool.start()
    const [a = ''] = inbox('a', 'messages')
    post(a, '{}')
    await until(() => names('a').length === 1)
    spool.remove('a')
    expect(spool.mode('a')).toBeUndefined()
    const left = post(a, '{}')
    const [b = ''] = inbox('b', 'messages')
    post(b, '{}')
    await until(() => names('b').length === 1)
    expect(existsSync(join(a, left))).toBe(true)
    inbox('a', 'messages')
    await until(() => names('a').includes(left))
  })

  it('first delivers what an earlier process claimed, in order and marked as recovered', async () => {
    const { claimed, spool, inbox, delivered } = createRig({ events, firstSeq: 3 })
    const [messages = ''] = inbox('a', 'messages')
    putFile(messages, `${first}-new.json`)
    putFile(join(claimed, '3'), '9~a~messages~second.json', '{"n":9}')
    putFile(join(claimed, '5'), '7~a~messages~first.json', '{"n":7}')
    await spool.start()
    expect(delivered.map(({ seq, name, recovered, text }) => ({ seq, name, recovered, text }))).toEqual([
      { seq: 7, name: 'first.json', recovered: true, text: '{"n":7}' },
      { seq: 9, name: 'second.json', recovered: true, text: '{"n":9}' },
      { seq: 10, name: `${first}-new.json`, recovered: false, text: '{}' },
    ])
  })

  it('keeps a batch that the consumer fails on, and delivers it again before anything else', async () => {
    let failures = 3
    const { spool, inbox, batches, reports, names, kinds } = createRig({
      events,
      consume(files, spool) {
        if (failures-- > 0) throw new Error('the store is full')
        spool.discard(files)
      },
    })
    const [messages = ''] = inbox('a', 'messages')
    for (const name of numbered(10)) putFile(messages, name)
    const starting = spool.start()
    await until(() => batches.length === 1)
    // Events do not shorten the pause before the batch is delivered again.
    const later = post(messages, '{}')
    await starting
    await until(() => names().includes(later))
    expect(kinds()).toEqual(['consumer_failed', 'consumer_failed', 'consumer_failed'])
    expect(reports[0]?.message).toContain('the store is full')
    expect(batches.slice(0, 4).map(batch => batch.map(({ name }) => name))).toEqual(
      Array.from({ length: 4 }, () => numbered(10)),
    )
    expect(batches[3]?.every(({ recovered }) => recovered)).toBe(true)
    expect(
      batches
        .slice(4)
        .flat()
        .map(({ name, recovered }) => ({ name, recovered })),
    ).toEqual([{ name: later, recovered: false }])
  })

  it('does not call a failing consumer more often because files keep coming', async () => {
    const asked: number[] = []
    const { spool, inbox } = createRig({
      events,
      consume() {
        asked.push(performance.now())
        throw new Error('no')
      },
    })
    const [messages = ''] = inbox('a', 'messages')
    post(messages, '{}')
    void spool.start()
    while (asked.length < 4) {
      post(messages, '{}')
      await sleep(1)
    }
    const pauses = asked.slice(1).map((time, i) => time - (asked[i] ?? 0))
    for (const [i, pause] of pauses.entries()) expect(pause).toBeGreaterThan(49 * 2 ** i)
  })

  it('delivers no second batch while the consumer is busy with the first', async () => {
    let busy = false
    const release: (() => void)[] = []
    const { spool, inbox, batches, names } = createRig({
      events,
      async consume(files, spool) {
        expect(busy).toBe(false)
        busy = true
        await new Promise<void>(resolve => release.push(resolve))
        busy = false
        spool.discard(files)
      },
    })
    const [messages = ''] = inbox('a', 'messages')
    putFile(messages, `${first}-x.json`)
    let started = false
    const starting = spool.start().then(() => {
      started = true
    })
    await until(() => batches.length === 1)
    for (let i = 0; i < 50; i++) {
      post(messages, '{}')
      spool.scan('a')
      await sleep(1)
    }
    expect(batches).toHaveLength(1)
    expect(started).toBe(false)
    release.shift()?.()
    await starting
    while (names().length < 51) {
      release.shift()?.()
      await sleep(1)
    }
    while (busy) {
      release.shift()?.()
      await sleep(1)
    }
  })

  it('delivers a batch again if the consumer’s promise rejects', async () => {
    let failures = 1
    const { spool, inbox, batches } = createRig({
      events,
      async consume(files, spool) {
        await sleep(1)
        if (failures-- > 0) throw new Error('later')
        spool.discard(files)
      },
    })
    const [messages = ''] = inbox('a', 'messages')
    putFile(messages, `${first}-x.json`)
    await spool.start()
    expect(batches.map(batch => batch.map(({ recovered }) => recovered))).toEqual([[true], [true]])
    expect(readdirSync(messages)).toEqual([])
  })

  it('stops only when the current batch is consumed', async () => {
    let finish = () => {}
    let finished = false
    const { spool, inbox, batches, claimedFiles } = createRig({
      events,
      async consume(files, spool) {
        await new Promise<void>(resolve => {
          finish = resolve
        })
        finished = true
        spool.discard(files)
      },
    })
    const [messages = ''] = inbox('a', 'messages')
    for (const name of numbered(1)) putFile(messages, name)
    const starting = spool.start()
    await until(() => batches.length === 1)
    const stopping = spool.stop()
    await starting
    expect(finished).toBe(false)
    finish()
    await stopping
    expect(finished).toBe(true)
    expect(claimedFiles()).toEqual([])
  })

  it('keeps working when the clock is set back', async () => {
    let back = 0
    const { spool, inbox, names } = createRig({ events, now: () => Date.now() - back })
    const [messages = ''] = inbox('a', 'messages')
    const late = inbox('b', 'messages')[0] ?? ''
    rmdirSync(late)
    await spool.start()
    back = 3_600_000
    for (let i = 1; i <= 5; i++) {
      post(messages, '{}')
      await until(() => names('a').length === i)
    }
    mkdirSync(late)
    post(late, '{}')
    await until(() => names('b').length === 1)
  })

  it('can be stopped before it has started', async () => {
    const { spool, inbox } = createRig({ events })
    inbox('a', 'messages')
    const starting = spool.start()
    await spool.stop()
    await starting
  })

  it('keeps the order of posts whose clock was set back', async () => {
    const { spool, inbox, delivered } = createRig({ events })
    const [messages = '', tasks = ''] = inbox('a', 'messages', 'tasks')
    let clock = first + 5
    const names = createNames(() => clock--)
    const posted = Array.from({ length: 1000 }, names)
    for (const [i, name] of posted.entries()) putFile(i % 2 ? messages : tasks, name)
    await spool.start()
    expect(delivered.map(({ name }) => name)).toEqual(posted)
  })

  it('keeps the order of files whose names contain only the millisecond, across directories', async () => {
    const { spool, inbox, delivered } = createRig({ events })
    const directories = inbox('a', 'messages', 'tasks', 'groups')
    const posted: string[] = []
    for (let i = 0; i < 1200; i++) {
      const chance = ((i * 7_919) % 46_656).toString(36).padStart(6, '0')
      const name = `${first + Math.floor(i / 6)}-${chance}.json`
      const path = join(directories[i % 3] ?? '', name)
      writeFileSync(path, '{}')
      const seconds = (first + i / 6) / 1000
      utimesSync(path, seconds, seconds)
      posted.push(name)
    }
    await spool.start()
    expect(delivered.map(({ name }) => name)).toEqual(posted)
  })

  it('keeps the order of files whose names contain no time', async () => {
    const { spool, inbox, delivered } = createRig({ events })
    const [messages = ''] = inbox('a', 'messages')
    const posted = Array.from({ length: 300 }, (_, i) => `message-${(i * 31) % 300}.json`)
    for (const [i, name] of posted.entries()) {
      putFile(messages, name)
      utimesSync(join(messages, name), first / 1000 + i, first / 1000 + i)
    }
    await spool.start()
    expect(delivered.map(({ name }) => name)).toEqual(posted)
  })

  it('keeps the order of a writer that alternates between directories', async () => {
    const { spool, inbox, delivered } = createRig({ events })
    const directories = inbox('a', 'messages', 'tasks', 'groups')
    await spool.start()
    const writer = startChild(['post', '2500', ...directories])
    await writer.output
    await until(() => delivered.length === 2500)
    expect(delivered.map(numberIn)).toEqual(rising(2500))
  })

  it('keeps the order of a writer that is slower than the spool', async () => {
    const { spool, inbox, delivered } = createRig({ events })
    const directories = inbox('a', 'messages', 'tasks')
    await spool.start()
    for (let i = 0; i < 300; i++) {
      for (let n = 0; n < (i % 3) + 1; n++) post(directories[(i + n) % 2] ?? '', '{}')
      await sleep(0)
    }
    await until(() => delivered.length === 600)
    expect(delivered.map(({ name }) => name).toSorted()).toEqual(delivered.map(({ name }) => name))
  })

  it('delivers one file of an inbox before all of another are done', async () => {
    let before = 0
    let own = ''
    const { spool, inbox, delivered } = createRig({
      events,
      consume(files, spool) {
        spool.discard(files)
        if (own !== '' || delivered.length < 500) return
        own = post(b, '{}')
        // As if the file had arrived with the first one of this batch.
        before = delivered.length - files.length
        // Without events the delay depends on the poll interval, which is not tested here.
        if (events === 'off') spool.scan('b')
      },
    })
    const [a = ''] = inbox('a', 'messages')
    const [b = ''] = inbox('b', 'messages')
    for (const name of numbered(1000)) putFile(a, name)
    await spool.start()
    const waited = delivered.findIndex(({ name }) => name === own) - before
    expect(waited).toBeGreaterThanOrEqual(0)
    expect(waited).toBeLessThanOrEqual(50)
  })

  it('alternates between inboxes, no matter how they name their files', async () => {
    const { spool, inbox, delivered } = createRig({ events })
    const [a = ''] = inbox('a', 'messages')
    const [b = ''] = inbox('b', 'messages')
    for (let i = 0; i < 400; i++) {
      putFile(a, `${first}-${String(i).padStart(6, '0')}.json`)
      putFile(b, `${first + i}.json`)
    }
    await spool.start()
    let last = 0
    for (const [i, { inbox }] of delivered.entries()) {
      if (inbox === 'b') last = i
      if (i < 400) expect(i - last).toBeLessThanOrEqual(50)
    }
  })

  it('limits a batch by bytes if files are large', async () => {
    const { spool, inbox, batches } = createRig({ events, fileLimit: 1024 * 1024 })
    const [a = ''] = inbox('a', 'messages')
    for (const name of numbered(40)) putFile(a, name, 'x'.repeat(1024 * 1024))
    await spool.start()
    for (const batch of batches) {
      expect(batch.reduce((bytes, { size }) => bytes + size, 0)).toBeLessThanOrEqual(5 * 1024 * 1024)
    }
  })

  it('takes no more files than the allowance permits, and the rest later', async () => {
    const allowed = new Map([
      ['a', 5],
      ['b', 1000],
    ])
    const asked: string[] = []
    const { spool, inbox, names } = createRig({
      events,
      allowance(id) {
        asked.push(id)
        return { files: allowed.get(id) ?? 0, retryMs: 5 }
      },
      consume(files, spool) {
        for (const { inbox } of files) allowed.set(inbox, (allowed.get(inbox) ?? 0) - 1)
        spool.discard(files)
      },
    })
    const [a = ''] = inbox('a', 'messages')
    const [b = ''] = inbox('b', 'messages')
    for (const name of numbered(20)) {
      putFile(a, name)
      putFile(b, name)
    }
    await spool.start()
    expect(names('a')).toEqual(numbered(5))
    expect(names('b')).toEqual(numbered(20))
    const asks = asked.length
    await until(() => asked.length > asks + 3)
    expect(names('a')).toEqual(numbered(5))
    allowed.set('a', 100)
    await until(() => names('a').length === 20)
    expect(names('a')).toEqual(numbered(20))
  })

  it('removes the newest files of an inbox above its limit, and reports how many', async () => {
    const { spool, inbox, names, reports } = createRig({ events, waitingLimit: 100 })
    const [a = ''] = inbox('a', 'messages')
    const [b = ''] = inbox('b', 'messages')
    for (const name of numbered(1500)) putFile(a, name)
    for (const name of numbered(50)) putFile(b, name)
    await spool.start()
    await until(() => readdirSync(a).length === 0)
    await until(() => reports.some(({ kind }) => kind === 'overflow'))
    const overflow = reports.filter(({ kind }) => kind === 'overflow')
    expect(overflow.every(({ inbox }) => inbox === 'a')).toBe(true)
    const thrown = overflow.reduce((sum, { count = 0 }) => sum + count, 0)
    expect(thrown + names('a').length).toBe(1500)
    expect(thrown).toBeGreaterThan(500)
    expect(names('a').slice(0, 100)).toEqual(numbered(100))
    expect(names('b')).toEqual(numbered(50))
  })

  it('does not report an inbox as unclaimable because a directory above the limit cannot be unlinked', async () => {
    const { spool, inbox, delivered, kinds } = createRig({
      events,
      waitingLimit: 10,
      consume: (files, spool) => spool.discard(files.filter(({ problem }) => !problem)),
    })
    const [a = ''] = inbox('a', 'messages')
    for (const name of numbered(10)) putFile(a, name)
    for (let i = 0; i < 50; i++) mkdirSync(join(a, `${first + 100 + i}.json`))
    await spool.start()
    await until(() => delivered.length === 60)
    expect(kinds().filter(kind => kind !== 'mode')).toEqual([])
  })

  it('waits for a half-written file, and delivers it again when it has grown', async () => {
    const { spool, inbox, delivered, claimed } = createRig({
      events,
      consume(files, spool) {
        for (const file of files) {
          if (file.mayGrow && !file.text.endsWith('}')) spool.postpone(file)
          else spool.discard([file])
        }
      },
    })
    const [messages = ''] = inbox('a', 'messages')
    await spool.start()
    writeFileSync(join(messages, 'x.json'), '{"half":')
    await until(() => delivered.length === 1)
    expect(delivered[0]).toMatchObject({ seq: 1, mayGrow: true, text: '{"half":' })
    post(messages, '{}')
    await until(() => delivered.some(({ seq }) => seq === 2))
    // The file is not read again until it changes.
    expect(delivered.filter(({ seq }) => seq === 1)).toHaveLength(1)
    appendFileSync(join(claimed, '0', '1~a~messages~x.json'), 'true}')
    await until(() => delivered.at(-1)?.text === '{"half":true}')
    await spool.stop()
    expect(existsSync(join(claimed, '0', '1~a~messages~x.json'))).toBe(false)
  })

  it('ends the grace time of a file that stays incomplete, whatever its mtime is', async () => {
    const { spool, inbox, delivered } = createRig({
      events,
      graceMs: 40,
      consume(files, spool) {
        for (const file of files) {
          if (file.mayGrow) spool.postpone(file)
          else spool.discard([file])
        }
      },
    })
    const [messages = ''] = inbox('a', 'messages')
    putFile(messages, 'x.json', '{')
    putFile(messages, 'y.json', '{')
    // The writer can set any mtime, so a recent mtime must not extend the grace time forever.
    utimesSync(join(messages, 'y.json'), 4_000_000_000, 4_000_000_000)
    await spool.start()
    const last = (name: string) => delivered.findLast(file => file.name === name)
    await until(() => last('x.json')?.mayGrow === false && last('y.json')?.mayGrow === false)
    const old = post(messages, '{')
    utimesSync(join(messages, old), 1, 1)
  })

  it('gives no grace time to an old file', async () => {
    const { spool, inbox, delivered } = createRig({ events })
    const [messages = ''] = inbox('a', 'messages')
    putFile(messages, 'x.json', '{')
    utimesSync(join(messages, 'x.json'), 1_700_000_000, 1_700_000_000)
    await spool.start()
    expect(delivered[0]?.mayGrow).toBe(false)
  })

  it('delivers a postponed file once, even if its batch fails', async () => {
    let failures = 2
    const taken: number[] = []
    const { spool, inbox } = createRig({
      events,
      consume(files, spool) {
        for (const file of files) if (file.text === '{' && file.mayGrow) spool.postpone(file)
        if (failures-- > 0) throw new Error('no')
        for (const file of files) {
          if (file.text === '{' && file.mayGrow) continue
          taken.push(file.seq)
          spool.discard([file])
        }
      },
      graceMs: 300,
    })
    const [messages = ''] = inbox('a', 'messages')
    putFile(messages, `${first}-half.json`, '{')
    utimesSync(join(messages, `${first}-half.json`), Date.now() / 1000, Date.now() / 1000)
    putFile(messages, `${first + 1}-whole.json`)
    await spool.start()
    await until(() => taken.length === 2)
    await sleep(300)
    expect(taken.toSorted()).toEqual([1, 2])
  })

  it('does not deliver a postponed file again after it is discarded', async () => {
    const { spool, inbox, delivered, claimedFiles } = createRig({
      events,
      consume(files, spool) {
        for (const file of files) spool.postpone(file)
        spool.discard(files)
      },
    })
    const [messages = ''] = inbox('a', 'messages')
    post(messages, '{')
    await spool.start()
    await sleep(50)
    expect(delivered).toHaveLength(1)
    expect(claimedFiles()).toEqual([])
  })

  it('adopts a file of our own as if it had been posted, once started', async () => {
    const { root, spool, inbox, delivered } = createRig({ events })
    inbox('a', 'messages')
    putFile(root, 'kept.error', '{"again":true}')
    expect(spool.adopt(join(root, 'kept.error'), 'a', 'messages', 'x.json')).toBe('EAGAIN')
    await spool.start()
    expect(spool.adopt(join(root, 'kept.error'), 'a', 'messages', 'x.json')).toBeUndefined()
    expect(spool.adopt(join(root, 'kept.error'), 'a', 'messages', 'x.json')).toBe('ENOENT')
    await until(() => delivered.length === 1)
    expect(delivered[0]).toMatchObject({ name: 'x.json', text: '{"again":true}', recovered: false })
  })

  it('refuses inbox and directory names that do not fit into a claimed file name', () => {
    const { spool, root } = createRig({ events })
    for (const id of ['', 'a~b', 'a/b', '..', 'a'.repeat(65)]) {
      expect(() => spool.add({ id, path: root, subdirectories: ['messages'] })).toThrow(RangeError)
    }
    expect(() => spool.add({ id: 'a', path: root, subdirectories: ['../x'] })).toThrow(RangeError)
  })

  it('recovers files from a directory with any valid name', async () => {
    const rig = createRig({
      events,
      consume() {
        throw new Error('this consumer always fails')
      },
    })
    const [subdirectories = ''] = rig.inbox('a', 'Subdirectory-2')
    putFile(subdirectories, `${first}-x.json`)
    void rig.spool.start()
    await until(() => rig.delivered.length > 0)
    await rig.spool.stop()
    const second = createRig({ events, root: rig.root })
    await second.spool.start()
    expect(second.delivered).toMatchObject([{ subdirectory: 'Subdirectory-2', recovered: true }])
  })

  it('removes old temporary files, and nothing else', async () => {
    const { spool, inbox, reports } = createRig({ events, now: () => Date.now() + 3_601_000 })
    const [messages = ''] = inbox('a', 'messages')
    const old = Buffer.concat([Buffer.from(`${messages}/`), Buffer.from([0xff])])
    writeFileSync(old, '')
    putFile(messages, 'x.json.tmp')
    // An mtime in the future does not protect it.
    utimesSync(join(messages, 'x.json.tmp'), 4_000_000_000, 4_000_000_000)
    mkdirSync(join(messages, '.tmp'))
    await spool.start()
    expect(readdirSync(messages)).toEqual(['.tmp'])
    expect(reports).toMatchObject([{ kind: 'abandoned_files', inbox: 'a', subdirectory: 'messages' }])
  })

  it('keeps recent temporary files', async () => {
    const { spool, inbox } = createRig({ events })
    const [messages = ''] = inbox('a', 'messages')
    putFile(messages, 'x.json.tmp', 'half')
    await spool.start()
    expect(readFileSync(join(messages, 'x.json.tmp'), 'utf8')).toBe('half')
  })
})
