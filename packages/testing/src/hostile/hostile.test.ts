import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  closeSync,
  constants,
  existsSync,
  ftruncateSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  asOrdinaryUser,
  asRoot,
  asRootUnderOneUser,
  type FileTestbed,
  isRoot,
  openFileTestbed,
} from './file-testbed.ts'

/**
 * A hostile group against a running daemon. In every test another group asks for something every few milliseconds, and
 * all of it has to be done, in order; a tree of files outside the hatch has to stay as it was, down to the time of the
 * last reading; and every file the hostile group has posted has to be accounted for: `testbed.close` looks into that.
 */
const request = (id: string, type = 'send_message', payload: object = { text: 'hello' }) =>
  JSON.stringify({ version: 1, id, type, payload })

/** Long enough for every directory to be looked at once, rung or not. */
const aSweep = async (testbed: FileTestbed) => {
  const over = Date.now() + 1300
  await testbed.until('a sweep', () => Date.now() > over)
}

/** Where the host misses something it makes it, at any moment: then once more. */
const putInPlace = (path: string, put: (path: string) => void) => {
  for (;;) {
    rmSync(path, { recursive: true, force: true })
    try {
      return put(path)
    } catch (error) {
      if (lstatSync(path, { throwIfNoEntry: false }) === undefined) throw error
    }
  }
}

const drops = ['messages', 'tasks', 'groups'] as const

const hosts = [
  { who: 'as root', users: asRoot, oneUser: asRootUnderOneUser, possible: isRoot },
  { who: 'as an ordinary user', users: asOrdinaryUser, oneUser: asOrdinaryUser, possible: true },
]

for (const { who, users, oneUser, possible } of hosts) {
  const ordinary = users.host !== 0

  describe.skipIf(!possible)(`a hostile group, against a host that runs ${who}`, () => {
    test.concurrent('links, pipes, sockets, devices and directories are taken away unread', async () => {
      await using testbed = await openFileTestbed({ users })
      const { attack, canary, evil } = testbed
      let posted = 0
      const place = (make: (path: string) => void) => {
        for (const drop of drops) {
          attack(() => make(join(evil, drop, testbed.name())))
          posted++
        }
      }
      place(path => symlinkSync(join(canary.path, 'secret.json'), path))
      place(path => symlinkSync('/etc/passwd', path))
      place(path => symlinkSync(canary.path, path))
      place(path => symlinkSync('/nowhere/at/all', path))
      place(path => symlinkSync(path, path))
      place(path => symlinkSync('/proc/self/environ', path))
      place(path => symlinkSync('../../../state/hatchway.db', path))
      const built = join(evil, 'input', 'built')
      const placeBuilt = (build: () => void) =>
        place(path => {
          build()
          renameSync(built, path)
        })
      placeBuilt(() => mkdirSync(built))
      placeBuilt(() => {
        mkdirSync(built)
        writeFileSync(join(built, testbed.name()), request('inside'))
      })
      placeBuilt(() =>
        mkdirSync(join(built, ...Array.from({ length: 60 }, () => 'deep')), { recursive: true }),
      )
      place(path => execFileSync('mkfifo', [path]))
      const writers: number[] = []
      placeBuilt(() => {
        execFileSync('mkfifo', [built])
        const fd = openSync(built, constants.O_RDWR | constants.O_NONBLOCK)
        writeSync(fd, request('piped'))
        writers.push(fd)
      })
      placeBuilt(() => {
        writeFileSync(built, request('two-names'))
        linkSync(built, join(evil, 'input', testbed.name()))
      })
      const sockets = await Promise.all(
        drops.map(async (drop, i) => {
          // The address of a socket is short: it is made where the path is, then moved.
          const server = createServer()
          const bound = join(testbed.data, `s${i}`)
          await new Promise<void>(resolve => server.listen(bound, resolve))
          renameSync(bound, join(evil, drop, testbed.name()))
          posted++
          return server
        }),
      )
      if (!ordinary) {
        const device = join(evil, 'input', 'device')
        for (const [drop, numbers] of [
          ['messages', ['c', '1', '5']],
          ['tasks', ['b', '7', '250']],
        ] as const) {
          execFileSync('mknod', [device, ...numbers])
          renameSync(device, join(evil, drop, testbed.name()))
          posted++
        }
      }
      await testbed.handled()
      for (const fd of writers) closeSync(fd)
      for (const server of sockets) server.close()

      const { evil: account } = await testbed.close()
      expect(account.refused).toEqual({ not_a_file: posted })
      expect(account.total).toBe(posted)
      expect(account.messages).toEqual([])
    })

    test.concurrent('a file of somebody else, linked into the hatch, is neither read nor kept nor changed', async () => {
      await using testbed = await openFileTestbed({ users: oneUser })
      const { canary, evil } = testbed
      // Under the container's own user the kernel would not let it; an agent in a plain process may have the host's.
      for (const drop of drops) linkSync(canary.linked, join(evil, drop, testbed.name()))
      await testbed.handled()
      const { evil: account } = await testbed.close()
      expect(account.refused).toEqual({ not_a_file: 3 })
      expect(lstatSync(canary.linked).nlink).toBe(1)
    })

    test.concurrent('links in the place of directories and snapshots are not followed, and what was held up is answered later', async () => {
      await using testbed = await openFileTestbed({ users: oneUser })
      const { attack, canary, evil } = testbed
      const inside = ['messages', 'tasks', 'groups', 'input', 'responses']
      for (const name of inside) {
        attack(() => {
          renameSync(join(evil, name), join(evil, `${name}.real`))
          putInPlace(join(evil, name), path => symlinkSync(join(canary.path, 'drop'), path))
        })
      }
      attack(() => {
        for (const name of ['current_tasks.json', 'available_groups.json']) {
          putInPlace(join(evil, name), path => symlinkSync(join(canary.path, 'current_tasks.json'), path))
        }
        symlinkSync(join(canary.path, '.tmp'), join(evil, 'tasks.real', '.tmp'))
        // What the host makes where something is missing must not go through a link, either.
        symlinkSync(join(canary.path, 'new'), join(evil, 'x_results'))
        writeFileSync(
          join(evil, 'tasks.real', testbed.name()),
          request('held-up', 'schedule_task', {
            prompt: 'p',
            schedule_type: 'interval',
            schedule_value: '5000',
          }),
        )
        writeFileSync(join(evil, 'tasks.real', testbed.name()), '{"type":"x_search","requestId":"elsewhere"}')
      })
      await testbed.restart()
      const real = (name: string) => {
        unlinkSync(join(evil, name))
        renameSync(join(evil, `${name}.real`), join(evil, name))
      }
      attack(() => real('tasks'))
      const tasks = join(evil, 'current_tasks.json')
      await testbed.until(
        'the task to be written down',
        () => lstatSync(tasks).isFile() && readFileSync(tasks, 'utf8').includes('"interval"'),
      )
      await testbed.until('the list of groups to be written', () =>
        lstatSync(join(evil, 'available_groups.json')).isFile(),
      )
      expect(readlinkSync(join(evil, 'responses'))).toBe(join(canary.path, 'drop'))
      attack(() => {
        for (const name of ['messages', 'groups', 'input', 'responses']) real(name)
        unlinkSync(join(evil, 'x_results'))
      })
      expect(await testbed.answer('held-up')).toMatchObject({ ok: true })
      await testbed.handled()
      const { evil: account } = await testbed.close()
      expect(account).toMatchObject({ accepted: 1, refused: { unavailable: 1 }, total: 2 })
    })

    test('a directory that is swapped for a link again and again leads nobody astray', async () => {
      await using testbed = await openFileTestbed({ users: oneUser })
      const posted = await testbed.run('swapDrop', 600, join(testbed.canary.path, 'drop'))
      await testbed.handled()
      const { evil } = await testbed.close()
      expect(evil.refused).toEqual({ unknown_type: posted })
      expect(evil.total).toBe(posted)
    })

    test('answers and snapshots go astray as little', async () => {
      await using testbed = await openFileTestbed({ users: oneUser })
      const { evil } = testbed
      const posted = await testbed.run('swapAnswers', 400, join(testbed.canary.path, 'drop'))
      await testbed.handled()
      expect(readdirSync(join(evil, 'responses'))).toHaveLength(posted)
      for (let i = 0; i < posted; i++) expect(await testbed.answer(`swap-${i}`)).toMatchObject({ ok: true })
      expect((await testbed.close()).evil).toMatchObject({ accepted: posted, total: posted })
    })

    test.concurrent('a file in the place of a directory, and a directory that is gone, end nothing', async () => {
      await using testbed = await openFileTestbed({ users: oneUser })
      const { attack, canary, evil } = testbed
      const inTheWay = (path: string) => writeFileSync(path, 'in the way')
      const toNowhere = (path: string) => symlinkSync('/nowhere/at/all', path)
      const toNew = (path: string) => symlinkSync(join(canary.path, 'new'), path)
      const toCanary = (path: string) => symlinkSync(canary.path, path)
      const pipe = (path: string) => execFileSync('mkfifo', [path])
      for (const [input, responses, groups] of [
        [inTheWay, toNowhere, toNew],
        [toCanary, pipe, inTheWay],
        [toNew, toCanary, pipe],
      ] as const) {
        attack(() => {
          for (const [name, replace] of Object.entries({ input, responses, groups })) {
            putInPlace(join(evil, name), replace)
          }
          rmSync(join(evil, 'tasks'), { recursive: true, force: true })
          rmSync(join(evil, 'messages'), { recursive: true, force: true })
        })
        await aSweep(testbed)
      }
      attack(() => {
        for (const name of ['input', 'responses', 'groups', 'tasks', 'messages']) {
          if (lstatSync(join(evil, name), { throwIfNoEntry: false })?.isDirectory()) continue
          putInPlace(join(evil, name), mkdirSync)
        }
      })
      testbed.post('tasks', request('after-all'))
      expect(await testbed.answer('after-all')).toMatchObject({ ok: true })
      await testbed.handled()
      expect((await testbed.close()).evil).toMatchObject({ accepted: 1, total: 1 })
    })

    test.concurrent('directories without the right to enter, list or write stop only what is in them', async () => {
      await using testbed = await openFileTestbed({ users: oneUser })
      const { attack, evil } = testbed
      attack(() => {
        writeFileSync(join(evil, 'messages', 'half.json.tmp'), '')
        writeFileSync(join(evil, 'tasks', 'half.json.tmp'), '')
      })
      let n = 0
      const locked = async (modes: Record<string, number>) => {
        testbed.post('tasks', request(`before-${n}`))
        attack(() => {
          for (const [name, mode] of Object.entries(modes)) chmodSync(join(evil, name), mode)
        })
        await aSweep(testbed)
        attack(() => {
          for (const name of Object.keys(modes).toReversed()) chmodSync(join(evil, name), 0o755)
        })
        testbed.post('tasks', request(`after-${n}`))
        expect(await testbed.answer(`after-${n++}`)).toMatchObject({ ok: true })
      }
      await locked({ '': 0o000 })
      await locked({ messages: 0o300, tasks: 0o600, responses: 0o600 })
      await locked({ messages: 0o600, tasks: 0o300, responses: 0o300, input: 0o000 })
      await locked({ messages: 0o000, tasks: 0o000, responses: 0o000 })
      attack(() => {
        rmSync(join(evil, 'groups'), { recursive: true })
        chmodSync(evil, 0o555)
      })
      await locked({ tasks: 0o555, responses: 0o555 })
      attack(() => {
        chmodSync(evil, 0o755)
        mkdirSync(join(evil, 'groups'), { recursive: true })
      })
      await testbed.handled()
      expect((await testbed.close()).evil).toMatchObject({ accepted: 2 * n, total: 2 * n })
    })

    test.runIf(ordinary)(
      'what cannot be taken out of a read-only directory is not executed, and then once',
      { concurrent: true },
      async () => {
        await using testbed = await openFileTestbed({ users: oneUser })
        const { attack, evil } = testbed
        for (const count of [1, 200]) {
          attack(() => {
            mkdirSync(join(evil, 'locked'))
            for (let i = 0; i < count; i++) {
              writeFileSync(join(evil, 'locked', testbed.name()), request(`locked-${count}-${i}`))
            }
            chmodSync(join(evil, 'locked'), 0o555)
            rmSync(join(evil, 'tasks'), { recursive: true })
            renameSync(join(evil, 'locked'), join(evil, 'tasks'))
          })
          const reports = () => testbed.output().split('does not allow its files to be moved').length - 1
          await testbed.until('a report', () => reports() > 0)
          const swept = Date.now() + 1300
          await testbed.until('a sweep', () => Date.now() > swept)
          expect(existsSync(join(evil, 'responses', `locked-${count}-0.json`))).toBe(false)
          expect(readdirSync(join(evil, 'tasks'))).toHaveLength(count)
          attack(() => chmodSync(join(evil, 'tasks'), 0o755))
          await testbed.handled()
        }
        const { evil: account } = await testbed.close()
        expect(account).toMatchObject({ accepted: 201, total: 201 })
        expect(account.messages).toHaveLength(201)
      },
    )

    test.runIf(ordinary)(
      'a group that was unregistered cannot end the host by locking its directory',
      { concurrent: true },
      async () => {
        await using testbed = await openFileTestbed({ users: oneUser })
        testbed.postAs('main', 'tasks', request('out', 'unregister_group', { jid: 'test:evil' }))
        expect(await testbed.answer('out', 'main')).toMatchObject({ ok: true })
        testbed.attack(() => chmodSync(testbed.evil, 0o000))
        const payload = { jid: 'test:new', name: 'New', folder: 'new' }
        testbed.postAs('main', 'tasks', request('in', 'register_group', payload))
        expect(await testbed.answer('in', 'main')).toMatchObject({ ok: true })
        const looked = Date.now() + 1500
        await testbed.until('the host to look around', () => Date.now() > looked)
        testbed.attack(() => chmodSync(testbed.evil, 0o755))
        testbed.post('tasks', request('still-here'))
        expect(await testbed.answer('still-here')).toMatchObject({ error: { code: 'unregistered_group' } })
        await testbed.handled()
        expect((await testbed.close()).evil.refused).toEqual({ unregistered_group: 1 })
      },
    )

    test.runIf(ordinary)(
      'files and directories that the host may not read or move are refused or reported',
      { concurrent: true },
      async () => {
        await using testbed = await openFileTestbed({ users: oneUser })
        const { attack, evil } = testbed
        attack(() => {
          writeFileSync(join(evil, 'input', 'half'), request('unreadable'))
          chmodSync(join(evil, 'input', 'half'), 0o000)
          renameSync(join(evil, 'input', 'half'), join(evil, 'tasks', testbed.name()))
        })
        const stuck = join(evil, 'messages', 'stuck.json')
        // With its mode from the first moment: the host must not get hold of it before.
        attack(() => mkdirSync(stuck, { mode: 0o555 }))
        await testbed.handled({ except: stuck })
        for (let i = 0; i < 50; i++)
          testbed.post('messages', '{"type":"message","chatJid":"test:evil","text":"beside it"}')
        await testbed.handled({ except: stuck })
        attack(() => chmodSync(stuck, 0o755))
        await testbed.handled()
        const { evil: account } = await testbed.close()
        expect(account.refused).toEqual({ internal: 1, not_a_file: 1 })
        expect(account).toMatchObject({ accepted: 50, total: 52 })
      },
    )

    test.concurrent('names that could be taken for something else are refused, and not executed', async () => {
      await using testbed = await openFileTestbed({ users })
      const { attack, evil, canary } = testbed
      const bad: (string | Buffer)[] = [
        'two\nlines.json',
        '..json.json'.replace('..', '…'),
        '-rf.json',
        '~.json',
        'a b.json',
        "'; rm -rf $HOME;'.json",
        '$(touch owned).json',
        '%2e%2e%2fstate.json',
        '..%2f..%2fstate.json'.replace(/^/, 'x'),
        '1~main~tasks~x.json',
        '!marked.json',
        'x\u202enosj.json',
        '\u001b[2Jclear.json',
        '\u007f.json',
        'ünïcode.json',
        '\ufffd.json',
        `${'l'.repeat(250)}.json`,
        `${'l'.repeat(116)}.json`,
        Buffer.from([0xff, 0xfe, 0x2f + 1, ...Buffer.from('.json')]),
        Buffer.from([0xed, 0xa0, 0x80, ...Buffer.from('.json')]),
        Buffer.from([...Buffer.alloc(250, 0xe9), ...Buffer.from('.json')]),
      ]
      for (const name of bad) testbed.post('tasks', request('named'), name)
      const fine = [
        'x.error.json',
        'evil-e.1-x.json.error.json',
        'x..json',
        '0.json',
        'CON.json',
        'x.json.json',
      ]
      for (const [i, name] of fine.entries()) testbed.post('tasks', request(`fine-${i}`), name)
      const litter = ['.json', '..json', '...json', '.hidden.json', 'x.json.tmp', 'x.JSON', 'json']
      for (const name of litter) testbed.post('tasks', request('never-posted'), name)
      await testbed.handled()
      expect(readdirSync(join(evil, 'tasks')).sort()).toEqual(litter.sort())
      expect(existsSync(join(evil, 'responses', 'named.json'))).toBe(false)
      attack(() => {
        for (const name of litter) unlinkSync(join(evil, 'tasks', name))
      })
      const { evil: account } = await testbed.close()
      expect(account.refused).toEqual({ bad_name: bad.length })
      expect(account).toMatchObject({ accepted: fine.length, total: bad.length + fine.length })
      for (const { original_file } of account.entries)
        expect(original_file).toMatch(/^[A-Za-z0-9._-]{1,120}$/)
      expect(readdirSync(canary.path)).not.toContain('owned')
    })

    test.concurrent('what is not one well-formed document is refused, without a word of it in any reason', async () => {
      await using testbed = await openFileTestbed({
        users,
        env: { HATCHWAY_LIMITS_ERROR_BYTES: '1073741824' },
      })
      const { attack, evil, marker } = testbed
      const limit = 1_048_576
      const expected: Record<string, number> = {}
      const refuse = (code: string, body: string | Uint8Array) => {
        testbed.post('tasks', body)
        expected[code] = (expected[code] ?? 0) + 1
      }
      const message = (text: string) => `{"type":"message","chatJid":"test:evil","text":${text}}`
      const bytes = (...parts: (string | number[])[]) => Buffer.concat(parts.map(part => Buffer.from(part)))

      refuse('too_large', `{"type":"message","text":"${'x'.repeat(limit)}"}`)
      refuse('too_large', message('"x"').padEnd(limit + 1))
      refuse('too_large', '['.repeat(5_000_000))
      refuse('too_deep', '['.repeat(limit))
      refuse('too_deep', '{"a":'.repeat(200_000))
      refuse('too_deep', `{"${marker}":${'['.repeat(500_000)}${']'.repeat(500_000)}}`)
      refuse('too_deep', `{"a":${'[{"b":'.repeat(32)}1${'}]'.repeat(32)}}`)
      refuse('duplicate_key', `{"type":"message","text":"${marker}","text":"second"}`)
      refuse('duplicate_key', `{"type":"message","text":"a","\\u0074ext":"${marker}"}`)
      refuse('duplicate_key', `{"type":"message","a":[{"b":{"${marker}":1,"${marker}":2}}]}`)
      refuse('duplicate_key', '{"__proto__":1,"__proto__":2}')
      refuse('invalid_utf8', bytes(`{"type":"message","text":"${marker}`, [0xff], '"}'))
      refuse('invalid_utf8', bytes('{"type":"message","text":"', [0xc0, 0xae], '"}'))
      refuse('invalid_utf8', bytes('{"type":"message","text":"', [0xed, 0xa0, 0x80], '"}'))
      refuse('invalid_utf8', bytes([0xff, 0xfe], '{\0}\0'))
      refuse('invalid_utf8', message('"\\ud800"'))
      refuse('invalid_utf8', `{"type":"message","text":["${marker}\\udc00\\ud800"]}`)
      refuse('invalid_json', bytes([0xef, 0xbb, 0xbf], message('"after a mark"')))
      refuse('invalid_json', Buffer.alloc(4096))
      refuse('invalid_json', `${message('"x"')}\0`)
      refuse('invalid_json', message(`"a\0${marker}"`))
      refuse('invalid_json', '')
      refuse('invalid_json', ' \n\t ')
      refuse('invalid_json', `{"password":${marker}}`)
      refuse('invalid_json', `${marker} is not JSON`)
      refuse('invalid_json', `{"type":"message","text":"${marker}`)
      refuse('invalid_json', `[${message(`"${marker}"`)}]`)
      refuse('invalid_json', `"${marker}"`)
      refuse('invalid_json', `${message('"one"')}${message(`"${marker}"`)}`)
      refuse('invalid_json', `{'type':'${marker}'}`)
      refuse('invalid_json', message('01'))
      refuse('invalid_json', message('NaN'))
      refuse('invalid_field', message('1e999'))
      refuse('invalid_field', message(`-${'9'.repeat(100_000)}`))
      refuse('invalid_field', `{"type":1e999,"text":"${marker}"}`)
      refuse('invalid_field', `{"type":{"${marker}":1}}`)
      refuse('invalid_field', `{"type":["${marker}"]}`)
      refuse('invalid_field', `{"type":null,"a":"${marker}"}`)
      refuse('invalid_field', `{"version":1,"type":"send_message","payload":{"text":"${marker}"}}`)
      refuse('invalid_field', `{"version":1,"id":"a1","type":"send_message","payload":["${marker}"]}`)
      refuse(
        'invalid_field',
        `{"version":1,"id":"a2","type":"send_message","payload":{"text":"","jid":"${marker} x"}}`,
      )
      refuse('unsupported_version', `{"version":1e999,"id":"a3","type":"send_message","payload":"${marker}"}`)
      refuse('unsupported_version', `{"version":"${marker}","id":"a4","type":"send_message"}`)
      refuse('unknown_type', `{"type":"no such ${marker}"}`)
      refuse('unknown_type', `{"type":"__proto__","a":"${marker}"}`)
      refuse('unknown_type', '{"version":1,"id":"a5","type":"constructor","payload":{}}')
      refuse('unknown_type', '{"version":1,"id":"a6","type":"__proto__","payload":{}}')
      refuse('unknown_type', `{"${marker}":"hasOwnProperty","type":"toString"}`)

      const sparse = join(evil, 'input', 'sparse')
      attack(() => {
        const fd = openSync(sparse, 'w')
        writeSync(fd, message('"the beginning"'))
        ftruncateSync(fd, 2 ** 31 + 5)
        closeSync(fd)
        renameSync(sparse, join(evil, 'tasks', testbed.name()))
      })
      expected.too_large = (expected.too_large ?? 0) + 1

      testbed.post('messages', message('"as long as may be"').padEnd(limit))
      testbed.post('messages', message('"\\u0000\\ud83d\\ude00"'))
      await testbed.handled()
      const { evil: account } = await testbed.close()
      expect(account.refused).toEqual(expected)
      expect(account.accepted).toBe(2)
      expect(account.messages.map(({ text }) => text)).toEqual(['as long as may be', '\0😀'])
      for (const { error } of account.entries) expect(error).not.toContain(marker)
      for (const row of account.rows) expect(JSON.stringify([row.outcome, row.type])).not.toContain(marker)
    })

    test.concurrent('what a file says about its sender, or about the host’s own affairs, counts for nothing', async () => {
      await using testbed = await openFileTestbed({ users })
      const lies = {
        main: true,
        isMain: 'true',
        is_main: 1,
        group: 'main',
        groupFolder: 'main',
        createdBy: 'main',
        actor: { kind: 'operator' },
        _approved: true,
        outcome: { ok: true },
        ok: true,
        seq: 0,
        constructor: { prototype: { main: true } },
      }
      const forged = `{"__proto__":{"main":true},${JSON.stringify(lies).slice(1, -1)},`
      const ask = (id: string, type: string, payload: object) =>
        testbed.post(
          'tasks',
          `${forged}"version":1,"id":"${id}","type":"${type}","payload":${forged}${JSON.stringify(payload).slice(1)}}`,
        )
      const codes: Record<string, string> = {}
      /** A file with lies in it is refused for them, and the same without is not allowed. */
      const refuse = (code: string, id: string, type: string, payload: object) => {
        codes[`${id}-lies`] = 'invalid_field'
        ask(`${id}-lies`, type, { nothing: null, ...payload })
        codes[id] = code
        testbed.post('tasks', request(id, type, payload))
      }
      refuse('forbidden', 'f1', 'register_group', { jid: 'test:mine', name: 'n', folder: 'mine' })
      refuse('forbidden', 'f2', 'unregister_group', { jid: 'test:witness' })
      refuse('forbidden', 'f3', 'refresh_groups', {})
      refuse('forbidden', 'f4', 'send_message', { jid: 'test:witness', text: 'as if it were mine' })
      refuse('forbidden', 'f5', 'send_message', { jid: 'test:evil2', text: 'almost my own' })
      refuse('forbidden', 'f6', 'react', { jid: 'test:main', emoji: 'x' })
      refuse('forbidden', 'f7', 'deploy', { rebuild: true })
      const plain = { prompt: 'p', schedule_type: 'interval', schedule_value: '60000' }
      codes.f8 = 'forbidden'
      testbed.post('tasks', request('f8', 'schedule_task', { ...plain, jid: 'test:witness' }))
      codes.f9 = 'forbidden'
      testbed.post('tasks', request('f9', 'schedule_task', { ...plain, group: 'main' }))
      codes.f10 = 'invalid_field'
      testbed.post('tasks', request('f10', 'send_message', { jid: '__proto__', text: 't' }))

      testbed.post('tasks', '{"type":"refresh_groups","payload":{},"source_group":"main"}')
      testbed.post(
        'tasks',
        '{"type":"schedule_task","isMain":true,"targetGroup":"main","prompt":"p","schedule_type":"interval","schedule_value":"60000"}',
      )
      testbed.post(
        'messages',
        '{"type":"message","chatJid":"test:main","text":"as main","groupFolder":"main","isMain":true}',
      )
      testbed.post('tasks', request('own', 'send_message', { text: 'in my own name' }))
      for (const [id, code] of Object.entries(codes)) {
        expect(await testbed.answer(id), id).toMatchObject({ ok: false, error: { code } })
      }
      expect(await testbed.answer('own')).toMatchObject({ ok: true })
      await testbed.handled()
      const { evil: account } = await testbed.close()
      expect(account.refused).toEqual({ forbidden: 11, invalid_field: 8, sender_mismatch: 1 })
      expect(account.messages).toMatchObject([{ group: 'evil', jid: 'test:evil', text: 'in my own name' }])
    })

    test.concurrent('a hostile main group gets no directory, schedule or right that nobody may have', async () => {
      await using testbed = await openFileTestbed({ users })
      const { data } = testbed
      const codes: Record<string, string> = {}
      let n = 0
      const refuse = (code: string, type: string, payload: object) => {
        const id = `m${n++}`
        codes[id] = code
        testbed.postAs('main', 'tasks', request(id, type, payload))
      }
      const register = (code: string, group: object) =>
        refuse(code, 'register_group', { jid: `test:new${n}`, name: 'n', folder: `new${n}`, ...group })
      for (const folder of [
        '../..',
        '..',
        '.',
        '',
        '/etc',
        'a/b',
        'a\\b',
        'a\0b',
        'errors',
        'ERRORS',
        'Errors',
        'global',
        'GlObAl',
        '-rf',
        '_x',
        '~root',
        'x'.repeat(65),
        'ünï',
        'new\n',
        '__proto__',
      ]) {
        register('invalid_field', { folder })
      }
      for (const folder of ['witness', 'Witness', 'EVIL', 'MAIN']) register('conflict', { folder })
      register('conflict', { jid: 'test:witness' })
      for (const jid of ['__proto__', 'constructor', 'prototype', '', 'a b', 'a\nb', 'x'.repeat(257)]) {
        register('invalid_field', { jid })
      }
      register('forbidden', { mounts_requested: true })
      const schedule = (code: string, task: object) =>
        refuse(code, 'schedule_task', {
          prompt: 'p',
          schedule_type: 'interval',
          schedule_value: '60000',
          ...task,
        })
      for (const schedule_value of [
        '1',
        '999',
        '1e30',
        '1e3',
        '12abc',
        '-60000',
        '60000.5',
        ' 60000',
        '0x10000',
        '99999999999999999999',
      ])
        schedule('bad_schedule', { schedule_value })
      schedule('invalid_field', { schedule_value: '' })
      schedule('invalid_field', { schedule_value: 60_000 })
      schedule('invalid_field', { schedule_type: 'hourly' })
      schedule('invalid_field', { schedule_type: '__proto__' })
      schedule('invalid_field', { schedule_type: 'cron', schedule_value: '*'.repeat(10_000) })
      for (const schedule_value of [
        '2001-01-01T00:00:00Z',
        '2030-02-30T00:00:00Z',
        'tomorrow',
        '99999-01-01T00:00:00Z',
      ])
        schedule('bad_schedule', { schedule_type: 'once', schedule_value })
      for (const schedule_value of [
        '* * 2 * 3 SUN#L',
        '0 0 30 2 *',
        '0 0 31 2,4,6,9,11 *',
        '* * * *',
        '60 * * * *',
        '*/0 * * * *',
        '5* * * * *',
        '* * * * * * 2020',
        '@reboot',
      ]) {
        schedule('bad_schedule', { schedule_type: 'cron', schedule_value, timezone: 'Europe/Berlin' })
      }
      schedule('bad_schedule', { timezone: '../../etc/passwd' })
      schedule('invalid_field', { group: '../witness' })
      schedule('not_found', { group: 'nobody' })
      schedule('not_found', { jid: 'test:nobody' })
      schedule('invalid_field', { task_id: '../../state/hatchway' })
      refuse('invalid_field', 'cancel_task', { task_id: '../1' })
      refuse('invalid_field', 'cancel_task', { task_id: { $ne: 1 } })
      refuse('not_found', 'cancel_task', { task_id: "1' OR '1'='1".replaceAll(/[' =]/g, '-') })
      refuse('forbidden', 'unregister_group', { jid: 'test:main' })

      const flat = (body: object) => testbed.postAs('main', 'tasks', JSON.stringify(body))
      flat({ type: 'register_group', jid: 'test:flat', name: 'n', folder: '../..', trigger: 't' })
      flat({
        type: 'register_group',
        jid: 'test:flat',
        name: 'n',
        folder: 'flat',
        trigger: 't',
        containerConfig: { additionalMounts: [{ hostPath: '/', containerPath: '/host', readonly: false }] },
      })
      for (const [id, code] of Object.entries(codes)) {
        expect(await testbed.answer(id, 'main'), id).toMatchObject({ ok: false, error: { code } })
      }
      testbed.postAs('main', 'tasks', request('last', 'refresh_groups', {}))
      expect(await testbed.answer('last', 'main')).toMatchObject({ ok: true, result: { groups: 3 } })
      await testbed.handled()
      expect(readdirSync(join(data, 'ipc')).sort()).toEqual(['errors', 'evil', 'main', 'witness'])
      expect(readdirSync(join(data, 'groups')).sort()).toEqual(['evil', 'main', 'witness'])
      expect(readdirSync(data).sort()).toEqual(['files', 'groups', 'ipc', 'spool', 'state'])
      expect((await testbed.close()).main).toMatchObject({ accepted: 1, total: n + 3 })
    })

    test.concurrent('request ids become no paths', async () => {
      await using testbed = await openFileTestbed({ users })
      const { evil, data } = testbed
      const before = readdirSync(evil, { recursive: true }).sort()
      const ids = [
        '../x',
        '../../witness/responses/w1',
        '/etc/x',
        '.',
        '..',
        '',
        'a/b',
        'a\0b',
        'a\nb',
        '-x',
        '~',
        'x'.repeat(129),
        'x'.repeat(10_240),
        '__proto__',
        'ü',
        'a.json',
      ]
      let posted = 0
      for (const id of [...ids, 7, null, {}, [], true]) {
        testbed.post(
          'tasks',
          JSON.stringify({ version: 1, id, type: 'send_message', payload: { text: 'x' } }),
        )
        posted++
        if (id === null) continue
        for (const type of [
          'service:x',
          'security:bash_check',
          'sync_worktree_to_main',
          'x_search',
          'ask_user:ask',
        ]) {
          testbed.post('tasks', JSON.stringify({ type, request_id: id, command: 'ls' }))
          testbed.post('tasks', JSON.stringify({ type, requestId: id, command: 'ls' }))
          posted += 2
        }
      }
      await testbed.handled()
      expect(readdirSync(evil, { recursive: true }).sort()).toEqual(before)
      expect(readdirSync(join(data, 'ipc', 'witness')).sort()).toEqual(
        readdirSync(join(data, 'ipc', 'evil')).sort(),
      )
      const { evil: account } = await testbed.close()
      expect(account.refused).toEqual({ invalid_field: posted })
    })

    test('files that change while they are read are taken as they are in one moment', async () => {
      await using testbed = await openFileTestbed({ users })
      const posted = await testbed.run('rewrite', 800)
      await testbed.handled()
      const { evil } = await testbed.close()
      expect(evil.total).toBe(posted)
      expect(evil.messages).toHaveLength(evil.accepted)
      for (const { text } of evil.messages) expect(text).toBe('rewritten')
    })

    test('files that are taken back, renamed and linked while they are claimed are handled once or not at all', async () => {
      await using testbed = await openFileTestbed({ users })
      const posted = await testbed.run('vanish', 3000)
      await testbed.handled()
      const { evil } = await testbed.close()
      expect(evil.total).toBe(posted)
      expect(evil.messages).toHaveLength(evil.accepted)
      expect(Object.keys(evil.refused).filter(code => code !== 'not_a_file')).toEqual([])
    })

    test.concurrent('times from another century confuse neither the journal nor a repeated request', async () => {
      await using testbed = await openFileTestbed({ users })
      const { attack, evil } = testbed
      const dated = (id: string, time: Date) =>
        attack(() => {
          const half = join(evil, 'input', 'half')
          writeFileSync(half, request(id))
          utimesSync(half, time, time)
          renameSync(half, join(evil, 'tasks', testbed.name()))
        })
      const times = [
        '1901-12-14T00:00:00Z',
        '1969-12-31T23:59:59Z',
        '2300-01-01T00:00:00Z',
        '2446-05-10T00:00:00Z',
      ]
      for (const [i, time] of times.entries()) dated(`t${i}`, new Date(time))
      await testbed.handled()
      for (const i of times.keys()) {
        expect(await testbed.answer(`t${i}`)).toMatchObject({ ok: true })
        attack(() => unlinkSync(join(evil, 'responses', `t${i}.json`)))
        testbed.post('tasks', request(`t${i}`))
        expect(await testbed.answer(`t${i}`)).toMatchObject({ ok: true })
      }
      await testbed.handled()
      await testbed.restart()
      const { evil: account } = await testbed.close()
      expect(account.messages).toHaveLength(times.length)
      expect(account.total).toBe(2 * times.length)
    })

    test.concurrent('answers whose place is taken wait, a thousand of them, and hold up nobody', async () => {
      await using testbed = await openFileTestbed({ users })
      const { attack, evil } = testbed
      const ids = Array.from({ length: 1100 }, (_, i) => `blocked-${i}`)
      for (const id of ids) {
        attack(() => mkdirSync(join(evil, 'responses', `${id}.json`, 'in the way'), { recursive: true }))
        testbed.post('tasks', request(id))
      }
      for (let i = 0; i < 20; i++) {
        testbed.post('tasks', request(`free-${i}`))
        expect(await testbed.answer(`free-${i}`)).toMatchObject({ ok: true })
      }
      attack(() => {
        for (const id of ids) rmSync(join(evil, 'responses', `${id}.json`), { recursive: true })
      })
      await testbed.handled()
      const isAnswered = (id: string) => existsSync(join(evil, 'responses', `${id}.json`))
      expect(ids.filter(isAnswered).length).toBeGreaterThanOrEqual(1000)
      // What was given up is not lost: the same request gets the first answer.
      const again = ids.filter(id => !isAnswered(id))
      expect(again).not.toEqual([])
      for (const id of again) testbed.post('tasks', request(id))
      for (const id of ids) expect(await testbed.answer(id)).toMatchObject({ ok: true })
      await testbed.handled()
      const { evil: account } = await testbed.close()
      expect(account.messages).toHaveLength(ids.length + 20)
      expect(account).toMatchObject({ refused: {}, total: ids.length + again.length + 20 })
    })

    test.concurrent('a file that its writer holds by a lease blocks nobody', async () => {
      await using testbed = await openFileTestbed({ users })
      const { attack, evil } = testbed
      const held = join(evil, 'input', 'held')
      attack(() => writeFileSync(held, request('held')))
      // F_SETLEASE with F_WRLCK: whoever opens the file waits until the lease is given up, or for 45 seconds.
      const code =
        '$SIG{IO} = "IGNORE"; open(F, "+<", $ARGV[0]); fcntl(F, 1024, 1) or die; print "held"; sleep 60'
      const { attacker } = users
      const leaseOwner = spawn(
        'perl',
        ['-e', `$| = 1; ${code}`, held],
        isRoot ? { uid: attacker, gid: attacker } : {},
      )
      try {
        await once(leaseOwner.stdout, 'data')
        attack(() => renameSync(held, join(evil, 'tasks', testbed.name())))
        for (let i = 0; i < 5; i++) {
          testbed.post('tasks', request(`beside-${i}`))
          expect(await testbed.answer(`beside-${i}`)).toMatchObject({ ok: true })
        }
        await testbed.handled()
      } finally {
        leaseOwner.kill('SIGKILL')
      }
      expect((await testbed.close()).evil).toMatchObject({ accepted: 5, refused: { internal: 1 }, total: 6 })
    })

    test.concurrent('large files that never end are given up, one by one', async () => {
      await using testbed = await openFileTestbed({ users })
      const { attack, evil, marker } = testbed
      const endless = Buffer.alloc(1_000_000, '1,')
      endless.write(`{"${marker}":[`)
      const tomorrow = new Date(Date.now() + 86_400_000)
      for (let i = 0; i < 20; i++) {
        attack(() => {
          const half = join(evil, 'input', 'half')
          writeFileSync(half, endless)
          utimesSync(half, tomorrow, tomorrow)
          renameSync(half, join(evil, 'tasks', testbed.name()))
        })
      }
      await testbed.handled()
      expect((await testbed.close()).evil.refused).toEqual({ invalid_json: 20 })
    })

    test.concurrent('more refused files than there is space for are counted', async () => {
      await using testbed = await openFileTestbed({ users, env: { HATCHWAY_LIMITS_ERROR_BYTES: '100000' } })
      const { attack, evil } = testbed
      for (let i = 0; i < 200; i++) testbed.post('tasks', `{"n":${i}}`)
      for (let i = 0; i < 50; i++)
        attack(() => symlinkSync('/etc/passwd', join(evil, 'tasks', testbed.name())))
      for (let i = 0; i < 50; i++) attack(() => mkdirSync(join(evil, 'tasks', testbed.name())))
      await testbed.handled()
      const { evil: account } = await testbed.close()
      expect(account.refused).toEqual({ invalid_field: 200, not_a_file: 100 })
      expect(account).toMatchObject({ shed: 0, total: 300 })
      // One more for the summary.
      expect(account.entries.length).toBeLessThan(100_000 / 4096 + 1)
    })

    test('files beyond those that may wait are thrown away and counted, each once', async () => {
      await using testbed = await openFileTestbed({
        users: oneUser,
        env: { HATCHWAY_LIMITS_FILES_WAITING: '100' },
      })
      const posted = await testbed.run('flood', 3000)
      await testbed.handled()
      const { evil } = await testbed.close()
      expect(evil.total).toBe(posted)
      expect(evil.shed).toBeGreaterThan(0)
    })

    test('twenty thousand files that are never posted do not hide those that are', async () => {
      await using testbed = await openFileTestbed({ users })
      const posted = await testbed.run('litter', 20_000)
      await testbed.handled()
      expect((await testbed.close()).evil).toMatchObject({ accepted: posted, total: posted })
    })

    test('a flood of a hundred thousand files drowns nobody', { timeout: 180_000 }, async () => {
      await using testbed = await openFileTestbed({ users: oneUser })
      const quiet = Date.now() + 2000
      await testbed.until('some quiet time', () => Date.now() > quiet)
      testbed.endPhase('before the flood')
      const posted = await testbed.run('flood', 100_000)
      testbed.endPhase('while it was prepared')
      await testbed.handled({ patienceMs: 150_000 })
      const { evil, phases } = await testbed.close({ leaks: false })
      console.table(
        phases.map(phase => ({ ...phase, name: phase.name === 'last' ? 'during the flood' : phase.name })),
      )
      expect(evil.total).toBe(posted)
      expect(evil.shed).toBeGreaterThan(45_000)
      expect(evil.messages).toHaveLength(evil.accepted)
    })
  })
}
