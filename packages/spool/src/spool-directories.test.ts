import {
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { post } from './post.ts'
import { createRig, putFile, type Rig, run, startChild, temporaryFolder, until } from './testing/rig.ts'

const isRoot = process.getuid?.() === 0
const nobody = 65534

/** Posts to an inbox and waits until the file is delivered. */
async function served({ names }: Rig, directory: string, inbox: string): Promise<void> {
  const name = post(directory, '{}')
  await until(() => names(inbox).includes(name))
}

describe.each(['auto', 'off'] as const)('with events %s, a directory', events => {
  const withoutModes = ({ kinds }: Rig, inbox: string) => kinds(inbox).filter(kind => kind !== 'mode')

  it('may be created late', async () => {
    const rig = createRig({ events })
    const [b = ''] = rig.inbox('b', 'messages')
    const path = rig.missingInbox('a', 'messages', 'tasks')
    await rig.spool.start()
    expect(withoutModes(rig, 'a')).toEqual(['missing', 'missing'])
    await served(rig, b, 'b')
    mkdirSync(join(path, 'messages'), { recursive: true })
    await served(rig, join(path, 'messages'), 'a')
    await served(rig, join(path, 'messages'), 'a')
    expect(withoutModes(rig, 'a')).toEqual(['missing', 'missing', 'appeared'])
    expect(withoutModes(rig, 'b')).toEqual([])
  })

  it('may be removed and created again', async () => {
    const rig = createRig({ events })
    const [a = ''] = rig.inbox('a', 'messages')
    const [b = ''] = rig.inbox('b', 'messages')
    await rig.spool.start()
    await served(rig, a, 'a')
    rmSync(a, { recursive: true })
    await until(() => withoutModes(rig, 'a').length === 1)
    await served(rig, b, 'b')
    mkdirSync(a)
    await served(rig, a, 'a')
    expect(withoutModes(rig, 'a')).toEqual(['missing', 'appeared'])
  })

  it('may be recreated with the same inode', async () => {
    const rig = createRig({ events })
    const [a = ''] = rig.inbox('a', 'messages')
    await rig.spool.start()
    await served(rig, a, 'a')
    rmdirSync(join(a, '.tmp'))
    for (let round = 0; round < 5; round++) {
      rmdirSync(a)
      mkdirSync(a)
      putFile(a, `${1_700_000_000_000 + round}.json`)
      await until(() => rig.names('a').includes(`${1_700_000_000_000 + round}.json`))
    }
    expect(rig.spool.mode('a')).toBe(events === 'auto' ? 'events' : 'polling')
    expect(withoutModes(rig, 'a')).not.toContain('missed_event')
  })

  it('may be swapped for another, which is read from then on', async () => {
    const rig = createRig({ events })
    const [a = ''] = rig.inbox('a', 'messages')
    await rig.spool.start()
    await served(rig, a, 'a')
    mkdirSync(`${a}-new`)
    putFile(`${a}-new`, '1700000000000-inside.json')
    renameSync(a, `${a}-old`)
    renameSync(`${a}-new`, a)
    putFile(`${a}-old`, '1700000000000-too-late.json')
    await until(() => rig.names('a').includes('1700000000000-inside.json'))
    await served(rig, a, 'a')
    expect(withoutModes(rig, 'a').filter(kind => kind === 'replaced')).toHaveLength(1)
    expect(readdirSync(`${a}-old`)).toContain('1700000000000-too-late.json')
  })

  it('is not followed if it is replaced by a link', async () => {
    const rig = createRig({ events })
    const [a = ''] = rig.inbox('a', 'messages')
    const [b = ''] = rig.inbox('b', 'messages')
    const elsewhere = join(rig.root, 'elsewhere')
    mkdirSync(elsewhere)
    putFile(elsewhere, '1700000000000-secret.json')
    putFile(elsewhere, 'litter.tmp')
    const before = statSync(elsewhere)
    await rig.spool.start()
    await served(rig, a, 'a')
    renameSync(a, `${a}-old`)
    symlinkSync(elsewhere, a)
    await until(() => withoutModes(rig, 'a').includes('not_a_directory'))
    for (let i = 0; i < 5; i++) {
      rig.spool.scan('a')
      await served(rig, b, 'b')
    }
    expect(withoutModes(rig, 'a').filter(kind => kind === 'not_a_directory')).toHaveLength(1)
    expect(readdirSync(elsewhere)).toHaveLength(2)
    expect(statSync(elsewhere).mtimeMs).toBe(before.mtimeMs)
    unlinkSync(a)
    mkdirSync(a)
    await served(rig, a, 'a')
    expect(rig.names()).not.toContain('1700000000000-secret.json')
  })

  it('may be a link, a file or a FIFO from the beginning, and start still resolves', async () => {
    const rig = createRig({ events })
    const elsewhere = temporaryFolder()
    putFile(elsewhere, '1700000000000-secret.json')
    const path = rig.missingInbox('a', 'messages', 'tasks', 'groups')
    mkdirSync(path, { recursive: true })
    symlinkSync(elsewhere, join(path, 'messages'))
    writeFileSync(join(path, 'tasks'), '')
    run('mkfifo', join(path, 'groups'))
    await rig.spool.start()
    expect(withoutModes(rig, 'a')).toEqual(['not_a_directory', 'not_a_directory', 'not_a_directory'])
    expect(rig.delivered).toEqual([])
    expect(readdirSync(elsewhere)).toHaveLength(1)
  })

  it('may have its parent replaced by a file', async () => {
    const rig = createRig({ events, sweepMs: 250 })
    const [a = ''] = rig.inbox('a', 'messages')
    const [b = ''] = rig.inbox('b', 'messages')
    await rig.spool.start()
    const parent = join(a, '..')
    renameSync(parent, `${parent}-old`)
    writeFileSync(parent, '')
    await until(() => withoutModes(rig, 'a').includes('not_a_directory'))
    await served(rig, b, 'b')
    unlinkSync(parent)
    renameSync(`${parent}-old`, parent)
    await served(rig, a, 'a')
  })

  it('may be swapped constantly while it is read, and nothing else is touched', async () => {
    const rig = createRig({ events })
    const [a = ''] = rig.inbox('a', 'messages')
    const elsewhere = temporaryFolder()
    for (let i = 0; i < 20; i++) putFile(elsewhere, `${1_700_000_000_000 + i}.json`, 'secret')
    await rig.spool.start()
    symlinkSync(elsewhere, `${a}-link`)
    for (let round = 0; round < 200; round++) {
      for (let i = 0; i < 20; i++) putFile(a, `${1_700_000_000_000 + i}.json`)
      renameSync(a, `${a}-away`)
      renameSync(`${a}-link`, a)
      rig.spool.scan('a')
      await new Promise(resolve => setImmediate(resolve))
      renameSync(a, `${a}-link`)
      renameSync(`${a}-away`, a)
      await new Promise(resolve => setImmediate(resolve))
    }
    await served(rig, a, 'a')
    expect(rig.delivered.every(({ text }) => text !== 'secret')).toBe(true)
    expect(readdirSync(elsewhere)).toHaveLength(20)
  })
})

/** A copy of the package that any user can read, and a directory owned by an unprivileged user. */
function forNobody() {
  const root = temporaryFolder()
  chmodSync(root, 0o755)
  cpSync(fileURLToPath(new URL('.', import.meta.url)), join(root, 'src'), { recursive: true })
  writeFileSync(join(root, 'package.json'), '{"type":"module"}')
  const own = join(root, 'own')
  mkdirSync(own)
  if (isRoot) chownSync(own, nobody, nobody)
  const options = {
    script: join(root, 'src', 'testing', 'rig.process.ts'),
    ...(isRoot ? { uid: nobody } : {}),
  }
  return { own, options }
}

describe('for an unprivileged user, a directory', () => {
  it.each([
    ['read-only', 'itself', '0555', ['unclaimable', 'claimable']],
    ['not searchable', 'itself', '0444', ['unclaimable', 'claimable']],
    ['inaccessible', 'itself', '0000', ['unreadable', 'appeared']],
    ['below an inaccessible one', 'parent', '0000', ['unreadable', 'appeared']],
  ])(
    'that is %s is reported once, retried rarely, and does not delay others',
    async (_what, which, mode, kinds) => {
      const { own, options } = forNobody()
      const child = startChild(['takeRights', own, which, mode], options)
      const { during, ...result } = JSON.parse(await child.output)
      expect(result).toEqual({ kinds })
      // If the parent is inaccessible, files can still be claimed through the handle that is already open.
      if (which === 'itself') expect(during.delivered).toBe(0)
      // This includes the scans of the other inbox for its five files.
      expect(during.scans).toBeLessThan(60)
    },
  )

  it.skipIf(!isRoot)(
    'is served even if something in it cannot be moved, which is reported once (needs root)',
    async () => {
      const { own, options } = forNobody()
      const messages = join(own, 'ipc', 'a', 'messages')
      mkdirSync(messages, { recursive: true })
      for (const path of [join(own, 'ipc'), join(own, 'ipc', 'a'), messages]) chownSync(path, nobody, nobody)
      mkdirSync(join(messages, '1600000000000-stuck.json'))
      const child = startChild(['stuck', own, '6'], options)
      expect(JSON.parse(await child.output)).toEqual({ kinds: ['unclaimable'] })
      expect(readdirSync(messages)).toContain('1600000000000-stuck.json')
    },
  )

  it.skipIf(!isRoot)('can have a file of another user quarantined (needs root)', async () => {
    const { own, options } = forNobody()
    putFile(own, 'x.json')
    const child = startChild(['quarantine', own, 'x.json'], options)
    expect(JSON.parse(await child.output)).toEqual({
      kept: [true],
      files: ['a-e.1-x.json.error', 'a-e.1-x.json.error.json'],
    })
  })
})

/** Runs a child in its own namespaces, where it can set limits and mount file systems that nobody else sees. */
const inNamespaces = (prepare: string) => ['unshare', '-Urm', 'sh', '-c', `${prepare} && exec "$@"`, 'sh']

function canPrepare(prepare: string): boolean {
  try {
    run('unshare', ...inNamespaces(prepare).slice(1), 'true')
    return true
  } catch (error) {
    if (process.env.CI) throw error
    return false
  }
}

describe('without file events, an inbox', () => {
  it.for([
    ['ENOSPC', 'max_inotify_watches', 'max_user_watches'],
    ['EMFILE', 'max_inotify_instances', 'max_user_instances'],
  ])(
    'is polled after %s, and the report says what to do (needs user namespaces)',
    async ([code, limit, advice], { skip }) => {
      const prepare = `echo 0 > /proc/sys/user/${limit}`
      skip(!canPrepare(prepare), 'user namespaces are not permitted here')
      const child = startChild(['watchRefused', temporaryFolder()], { under: inNamespaces(prepare) })
      const { mode, reports } = JSON.parse(await child.output)
      expect(mode).toBe('polling')
      expect(reports).toEqual([
        { kind: 'watch_refused', message: expect.stringContaining(`(${code}): raise fs.inotify.${advice}`) },
      ])
    },
  )

  it('is swept, then polled, and watched again when events arrive (needs user namespaces)', async ({
    skip,
  }) => {
    const root = temporaryFolder()
    for (const name of ['lower', 'upper', 'work', 'mounted']) mkdirSync(join(root, name))
    const of = (name: string) => join(root, name)
    const prepare = `mount -t overlay overlay -o lowerdir=${of('lower')},upperdir=${of('upper')},workdir=${of('work')} ${of('mounted')}`
    skip(!canPrepare(prepare), 'overlay mounts in user namespaces are not permitted here')
    const child = startChild(['missedEvents', of('mounted'), of('upper')], { under: inNamespaces(prepare) })
    const { kinds, ...modes } = JSON.parse(await child.output)
    expect(modes).toEqual({ first: 'events', found: 'polling', afterBurst: 'polling', last: 'events' })
    expect(kinds).toEqual(['missed_event', 'mode', 'mode'])
    expect(readFileSync('/proc/self/mountinfo', 'utf8')).not.toContain(of('mounted'))
  })
})
