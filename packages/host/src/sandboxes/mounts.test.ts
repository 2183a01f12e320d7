import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createLayout, layoutOf } from '../base/layout.ts'
import type { MountRequest } from './allowed-mounts.ts'
import { createGlobalFolder, type MountsOptions, mountsFor } from './mounts.ts'

const isRoot = process.getuid?.() === 0

function rig() {
  // Not in the folder of the other tests, which may be in /dev: nothing there is ever mounted.
  const home = mkdtempSync(join(realpathSync('/tmp'), 'hatchway-mounts-'))
  onTestFinished(() => rmSync(home, { recursive: true, force: true }))
  const data = join(home, 'project', 'data')
  const layout = layoutOf(data)
  createLayout(layout)
  for (const name of ['messages', 'tasks', 'input'])
    mkdirSync(join(layout.ipc, 'one', name), { recursive: true })
  writeFileSync(join(layout.ipc, 'one', 'current_tasks.json'), '[]')
  const allowed = join(home, 'etc', 'allowed')
  const put = (path: string, content = '') => {
    mkdirSync(dirname(join(home, path)), { recursive: true })
    writeFileSync(join(home, path), content)
    return join(home, path)
  }
  put('work/code/main.c')
  put('etc/allowed', `# may be mounted\n\n${home}/work\n/no/such/place\n`)
  const mounts = (change: Partial<MountsOptions> = {}) =>
    mountsFor({
      layout,
      group: { folder: 'one' },
      owner: isRoot ? { uid: 1000, gid: 1001 } : undefined,
      rules: { allowedFile: allowed, project: join(home, 'project'), data },
      ...change,
    })
  const problems = (request: Partial<MountRequest>) => {
    const answer = mounts({
      requests: [{ from: join(home, 'work/code'), to: 'code', writable: false, ...request }],
    })
    return answer.ok ? '' : answer.problems.join('\n')
  }
  return { home, layout, allowed, put, mounts, problems }
}

test('a group gets its hatch read-only with every subdirectory as a mount over it, its folder and its home', () => {
  const { layout, mounts } = rig()
  createGlobalFolder(layout)
  const answer = mounts({ node: '/bin/node', bundle: '/bundle.mjs', modelDirectory: '/state/model/1' })
  const { ipc, groups } = layout
  expect(answer).toEqual({
    ok: true,
    mounts: [
      { from: join(ipc, 'one'), to: '/workspace/ipc', writable: false },
      { from: join(ipc, 'one/input'), to: '/workspace/ipc/input', writable: true },
      { from: join(ipc, 'one/messages'), to: '/workspace/ipc/messages', writable: true },
      { from: join(ipc, 'one/tasks'), to: '/workspace/ipc/tasks', writable: true },
      { from: join(groups, 'one'), to: '/workspace/group', writable: true },
      { from: join(groups, 'one/.home'), to: '/workspace/group/.home', writable: true },
      { from: join(groups, 'one/.home'), to: '/home/agent', writable: true },
      { from: join(groups, 'global'), to: '/workspace/global', writable: false },
      { from: '/bundle.mjs', to: '/opt/hatchway/agent.mjs', writable: false },
      { from: '/bin/node', to: '/opt/hatchway/node', writable: false },
      { from: '/state/model/1', to: '/run/hatchway', writable: false },
    ],
  })
  const home = lstatSync(join(groups, 'one', '.home'))
  expect(home.mode & 0o777).toBe(0o700)
  if (isRoot) expect([home.uid, home.gid]).toEqual([1000, 1001])
})

test('a home that an agent replaced by a link is not mounted', () => {
  const { layout, mounts } = rig()
  mkdirSync(join(layout.groups, 'two'))
  mkdirSync(join(layout.groups, 'one'))
  symlinkSync('../two', join(layout.groups, 'one', '.home'))
  expect(mounts()).toEqual({ ok: false, problems: [expect.stringContaining('.home is not a directory')] })
})

test('a link among the subdirectories of the hatch is not mounted', () => {
  const { layout, mounts } = rig()
  symlinkSync('/etc', join(layout.ipc, 'one', 'responses'))
  const answer = mounts()
  expect(answer.ok && answer.mounts.map(({ to }) => to)).not.toContain('/workspace/ipc/responses')
})

test('a directory below an allowed one is mounted under its real path', () => {
  const { home, mounts } = rig()
  symlinkSync(join(home, 'work/code'), join(home, 'shortcut'))
  const answer = mounts({ requests: [{ from: join(home, 'shortcut'), to: 'code', writable: true }] })
  expect(answer.ok && answer.mounts.at(-1)).toEqual({
    from: join(home, 'work/code'),
    to: '/workspace/extra/code',
    writable: true,
  })
})

test('what is not allowed is refused with the reason', () => {
  const { home, put, problems } = rig()
  put('elsewhere/file')
  put('workshop/file')
  symlinkSync(join(home, 'elsewhere'), join(home, 'work', 'out'))
  expect(problems({ from: join(home, 'elsewhere') })).toContain(
    'is not below a directory that the list allows',
  )
  expect(problems({ from: join(home, 'workshop') })).toContain(
    'is not below a directory that the list allows',
  )
  expect(problems({ from: join(home, 'work/out') })).toContain(
    'is not below a directory that the list allows',
  )
  expect(problems({ from: join(home, 'work/../elsewhere') })).toContain('not below')
  expect(problems({ from: join(home, 'work/none') })).toContain('does not exist')
  expect(problems({ from: 'work/code' })).toContain('not an absolute path')
})

test.each([
  '.ssh/config',
  '.gnupg/x',
  '.aws/credentials',
  '.kube/config',
  '.docker/config.json',
  '.netrc',
  '.env',
  '.env.production',
  'deep/er/.ENV',
  'keys/id_ed25519',
  'credentials.json',
  'server.pem',
])('%s is never mounted: not itself, not below it, not a directory that holds it', secret => {
  const { home, put, problems } = rig()
  const file = put(`work/code/${secret}`)
  expect(problems({ from: file })).toContain('where secrets are kept')
  expect(problems({ from: join(home, 'work/code') })).toContain('where secrets are kept')
})

test('an example of an environment file holds no secret', () => {
  const { put, problems } = rig()
  put('work/code/.env.example')
  expect(problems({})).toBe('')
})

test('the data directory and the system are never mounted, whatever the list says', () => {
  const { home, allowed, problems } = rig()
  writeFileSync(allowed, `/\n${home}\n/run\n/etc\n/proc\n/\n`)
  expect(problems({ from: join(home, 'project') })).toContain('the data directory')
  expect(problems({ from: join(home, 'project/data/state') })).toContain('the data directory')
  expect(problems({ from: home })).toContain('the data directory')
  expect(problems({ from: '/run' })).toContain('belongs to the system')
  expect(problems({ from: '/etc' })).toContain('belongs to the system')
  expect(problems({ from: '/usr' })).toContain('not below')
  expect(problems({ from: join(home, 'etc') })).toContain('the list of allowed mounts lies in it')
})

test('the place in the sandbox is below /workspace/extra, and each only once', () => {
  const { home, problems, mounts } = rig()
  for (const to of ['/workspace/ipc/messages', '/etc', '../group', 'a/../../ipc', '/workspace/extra', '.'])
    expect(problems({ to }), to).toContain('its place in the sandbox')
  expect(problems({ to: '/workspace/extra/a/b' })).toBe('')
  const request = { from: join(home, 'work/code'), writable: false }
  const twice = mounts({
    requests: [
      { ...request, to: 'a' },
      { ...request, to: 'a/b' },
    ],
  })
  expect(twice).toMatchObject({ ok: false, problems: [expect.stringContaining('another one is at')] })
})

test('the list itself must be out of reach', () => {
  const { home, allowed, put, mounts } = rig()
  const requests = [{ from: join(home, 'work/code'), to: 'code', writable: false }]
  const under = (allowedFile: string | undefined) => {
    const answer = mounts({
      requests,
      rules: { allowedFile, project: join(home, 'project'), data: join(home, 'project/data') },
    })
    return answer.ok ? '' : answer.problems.join('\n')
  }
  expect(under(allowed)).toBe('')
  expect(under(undefined)).toContain('`mountsAllowed`')
  expect(under(join(home, 'none'))).toContain('does not exist')
  expect(under(put('project/allowed', `${home}/work\n`))).toContain('Move it elsewhere')
  symlinkSync(join(home, 'project/allowed'), join(home, 'etc/link'))
  expect(under(join(home, 'etc/link'))).toContain('Move it elsewhere')
  expect(under(put('etc/relative', 'work\n'))).toContain('not an absolute path')
  chmodSync(allowed, 0o666)
  expect(under(allowed)).toContain('chmod go-w')
})

test('without any request no list is needed', () => {
  const { mounts } = rig()
  expect(mounts({ rules: { allowedFile: undefined, project: '/', data: '/' } }).ok).toBe(true)
})
