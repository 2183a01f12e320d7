import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { projectRoot } from '../../../../testing/src/paths.ts'
import { auditAnswer } from '../../api/answers.ts'
import { findProgram } from '../../base/programs.ts'
import { isAlive, openProject, patiently, program } from './testing/project.ts'

/**
 * The real supervisor, the real daemon and real restarts, of a project that is deployed in good and broken revisions.
 * Requests come as files, as from an agent in a container that outlives the restart.
 */
describe.concurrent('a good revision', () => {
  test('runs, and the process that came up gives the answer and resumes the agent, once', async context => {
    const project = await openProject(context)
    const before = await project.up()
    const two = project.commit('two')
    project.ask('d-1', { resume_prompt: 'go on' })
    expect(await project.answer('d-1')).toMatchObject({
      ok: true,
      result: { status: 'deployed', from: project.first, to: two },
    })
    const after = await project.up()
    expect(after).not.toBe(before)
    expect(isAlive(before)).toBe(false)
    expect(project.lines('built')).toEqual(['two'])
    expect(project.lines('starts')).toEqual([`${before} one`, `${after} two`])
    await patiently('the agent is resumed', async () => project.heard().length > 0)

    // The same request again is answered again, and nothing else happens.
    project.forgetAnswer('d-1')
    project.ask('d-1', { resume_prompt: 'go on' })
    expect(await project.answer('d-1')).toMatchObject({ ok: true, result: { to: two } })
    project.ask('d-2', {})
    expect(await project.answer('d-2')).toMatchObject({ error: { code: 'wrong_state' } })
    expect(await project.up()).toBe(after)
    expect(project.heard()).toEqual(['go on'])
    expect(await project.deploys()).toMatchObject([
      { group: 'main', from: project.first, to: two, branch: 'main', status: 'done', error: null },
    ])
    const { out } = await project.hatchway('deploys')
    expect(out).toContain(`${two.slice(0, 12)}  done`)
    expect(await project.get('/audit?action=deploy&outcome=deployed', auditAnswer)).toMatchObject([
      { group: 'main', actor: 'agent', action: 'deploy', outcome: 'deployed' },
    ])
  })

  test('is built again where a person asks for that', async context => {
    const project = await openProject(context)
    const before = await project.up()
    const nothing = await project.hatchway('deploy')
    expect(nothing).toMatchObject({ code: 2, out: '' })
    expect(nothing.err).toContain('There is nothing to deploy')
    const done = await project.hatchway('deploy', '--rebuild', '--wait')
    expect(done).toEqual({ code: 0, out: `${project.first.slice(0, 12)} is running.\n`, err: '' })
    expect(await project.up()).not.toBe(before)
    expect(project.heard()).toEqual([])
  })
})

test.concurrent('what must not happen is refused at once, and nothing is restarted', async context => {
  const project = await openProject(context)
  const pid = await project.up()
  project.ask('d-1', {}, 'other')
  expect(await project.answer('d-1', 'other')).toMatchObject({ error: { code: 'forbidden' } })
  project.commit('two')
  project.ask('d-2', { head: project.first })
  expect(await project.answer('d-2')).toMatchObject({ error: { code: 'conflict' } })
  writeFileSync(join(project.repo, 'name'), 'not committed')
  project.ask('d-3', {})
  const dirty = await project.answer('d-3')
  expect(dirty.error).toMatchObject({ code: 'dirty_tree' })
  expect(dirty.error?.message).toMatch(/^name$/m)
  expect(await project.up()).toBe(pid)
  expect(await project.deploys()).toEqual([])
})

test.concurrent('a run that a deploy has called cannot deploy', async context => {
  const project = await openProject(context)
  const two = project.commit('two')
  project.ask('d-1', { head: two.slice(0, 10), resume_prompt: 'now deploy again' })
  expect(await project.answer('d-1')).toMatchObject({ ok: true })
  const pid = await project.up()
  expect(await project.again()).toMatchObject({ ok: false, error: { code: 'wrong_state' } })
  expect(await project.up()).toBe(pid)
  expect(await project.deploys()).toHaveLength(1)
})

test.concurrent('a revision whose check fails is not started', async context => {
  const project = await openProject(context, { check: ['echo looking closely; test "$(cat name)" != bad'] })
  const pid = await project.up()
  const bad = project.commit('bad')
  project.ask('d-1', { resume_prompt: 'go on' })
  const { error } = await project.answer('d-1')
  expect(error).toMatchObject({ code: 'check_failed' })
  expect(error?.message).toContain('looking closely')
  expect(error?.message).toContain(`the checkout stays at ${bad.slice(0, 12)}`)
  expect(await project.up()).toBe(pid)
  expect(await project.deploys()).toMatchObject([{ status: 'failed', code: 'check_failed' }])
  // It has its receipt, and its session was not ended.
  expect(project.heard()).toEqual([])
  project.commit('better')
  project.ask('d-2', {})
  expect(await project.answer('d-2')).toMatchObject({ ok: true })
})

describe.concurrent('a revision that does not come up', () => {
  test('as it ends at once: the one before is built and started again, and a later one can be deployed', async context => {
    const project = await openProject(context)
    const before = await project.up()
    const bad = project.commit('bad', program.broken)
    project.ask('d-1', { resume_prompt: 'go on' })
    const { error } = await project.answer('d-1')
    expect(error).toMatchObject({ code: 'rolled_back' })
    expect(error?.message).toContain('it ended with code 3')
    expect(error?.message).toContain('a part is missing')
    expect(await project.up()).not.toBe(before)
    expect(project.git('rev-parse', 'HEAD')).toBe(project.first)
    expect(project.git('rev-parse', 'main')).toBe(bad)
    expect(project.lines('built')).toEqual(['one'])
    await patiently('the agent is resumed', async () => project.heard().length > 0)
    expect(project.heard()).toHaveLength(1)
    expect(project.heard()[0]).toMatch(/^The deploy did not succeed\..*a part is missing.*\n\ngo on$/s)
    expect(await project.get('/audit?action=deploy&outcome=rolled_back', auditAnswer)).toMatchObject([
      { outcome: 'rolled_back' },
    ])
    // A person has a word to say about what happens next.
    await project.hatchway('chat', '--once', 'do that again', '--wait')
    expect(project.heard().at(-1)).toBe('do that again')
    project.ask('d-2', {})
    const same = await project.answer('d-2')
    expect(same.error?.message).toContain('There is nothing to deploy')

    // Somebody repairs the branch, without touching the checkout.
    project.git('worktree', 'add', '--quiet', '../repair', 'main')
    writeFileSync(join(project.repo, '..', 'repair', 'name'), 'repaired')
    project.git('-C', '../repair', 'checkout', '--quiet', project.first, '--', 'start.mjs')
    project.git('-C', '../repair', 'commit', '--quiet', '--all', '--message', 'repaired')
    project.git('worktree', 'remove', '../repair')
    project.ask('d-3', {})
    expect(await project.answer('d-3')).toMatchObject({
      ok: true,
      result: { to: project.git('rev-parse', 'main') },
    })
    expect(project.lines('built')).toEqual(['repaired'])
    expect(project.git('rev-parse', '--abbrev-ref', 'HEAD')).toBe('main')
  })

  test('as it hangs: it is ended with everything it has started', async context => {
    const project = await openProject(context, {
      healthMs: 2000,
      build: ['cp name built', 'echo // built >> start.mjs'],
    })
    project.commit('bad', program.hanging)
    project.ask('d-1', {})
    const { error } = await project.answer('d-1')
    expect(error).toMatchObject({ code: 'rolled_back' })
    expect(error?.message).toContain('it did not say within 2 s that it is up')
    const found = /^(\d+) hangs (\d+)$/m.exec(project.lines('starts').join('\n')) ?? []
    expect(found.slice(1).map(one => isAlive(Number(one)))).toEqual([false, false])
    // What the build had written to tracked files was not in the way, and is not lost.
    expect(project.git('stash', 'list')).toContain('before going back')
  })

  test('and is the only one there is: it is started again until it comes up', async context => {
    const project = await openProject(context)
    const two = project.commit('two', program.moody)
    project.ask('d-1', {})
    expect(await project.answer('d-1')).toMatchObject({ ok: true })
    writeFileSync(join(project.repo, 'mood'), '')
    project.ask('d-2', { rebuild: true })
    const { error } = await project.answer('d-2')
    expect(error).toMatchObject({ code: 'service_failed' })
    expect(error?.message).toContain('not today')
    expect(project.git('rev-parse', 'HEAD')).toBe(two)
    expect(await project.deploys()).toMatchObject([{ status: 'done' }, { status: 'failed' }])
  })
})

describe.concurrent('the daemon is killed', () => {
  test('while it builds: the build ends, and whoever asked is told', async context => {
    const project = await openProject(context, {
      build: ['test "$(cat name)" = one || { echo $$ > building; sleep 1000; }'],
    })
    const before = await project.up()
    project.commit('two')
    project.ask('d-1', { resume_prompt: 'go on' })
    const building = await patiently('it builds', async () => project.lines('building')[0])
    process.kill(before, 'SIGKILL')
    expect(await project.answer('d-1')).toMatchObject({ error: { code: 'interrupted' } })
    expect(isAlive(Number(building))).toBe(false)
    expect(await project.deploys()).toMatchObject([{ status: 'failed', code: 'interrupted' }])
    expect(project.heard()).toEqual([])
  })

  test.for([
    ['before anything was built', 'deploy_stored', { error: { code: 'interrupted' } }],
    ['between the hand-over and its own note of it', 'deploy_handed', { ok: true }],
    ['when all is handed over', 'deploy_restarting', { ok: true }],
  ] as const)('%s', async ([, step, answer], context) => {
    const project = await openProject(context)
    // The daemon that is killed is one that was started with this.
    writeFileSync(join(project.repo, 'fault'), step)
    const before = await project.up()
    process.kill(before, 'SIGKILL')
    const faulty = await patiently('another one runs', async () => {
      const pid = await project.pid()
      return pid !== before && pid
    })
    project.commit('two')
    project.ask('d-1', { resume_prompt: 'go on' })
    expect(await project.answer('d-1')).toMatchObject(answer)
    expect(await project.up()).not.toBe(faulty)
    const isDone = 'ok' in answer
    expect(await project.deploys()).toMatchObject([{ status: isDone ? 'done' : 'failed' }])
    if (isDone) await patiently('the agent is resumed', async () => project.heard().length > 0)
    expect(project.heard()).toEqual(isDone ? ['go on'] : [])
  })

  test('while it builds one that does not come up: the one before comes back', async context => {
    const project = await openProject(context, {
      build: ['test "$(cat name)" != bad || { echo $$ > building; sleep 1000; }', 'cp name built'],
    })
    const before = await project.up()
    const bad = project.commit('bad', program.broken)
    project.ask('d-1', {})
    await patiently('it builds', async () => project.lines('building')[0])
    process.kill(before, 'SIGKILL')
    const { error } = await project.answer('d-1')
    expect(error).toMatchObject({ code: 'rolled_back' })
    expect(error?.message).toContain('a part is missing')
    expect(await project.up()).not.toBe(before)
    expect(project.git('rev-parse', 'HEAD')).toBe(project.first)
    expect(project.git('rev-parse', 'main')).toBe(bad)
    expect(project.lines('built')).toEqual(['one'])
    // Nothing is under way any more.
    project.commit('better')
    project.ask('d-2', {})
    expect(await project.answer('d-2')).toMatchObject({ ok: true })
  })

  test('before it was asked for one that does not come up: the one before comes back', async context => {
    const project = await openProject(context)
    const before = await project.up()
    const handover = join(project.data, 'state', 'deploy.json')
    await patiently('it is noted what runs', async () => existsSync(handover))
    const bad = project.commit('bad', program.broken)
    await project.end('SIGKILL')
    project.supervise()
    expect(await project.up()).not.toBe(before)
    expect(project.git('rev-parse', 'HEAD')).toBe(project.first)
    expect(project.lines('built')).toEqual(['one'])
    await patiently('it is listed', async () => (await project.deploys())[0]?.ended_at != null)
    expect(await project.deploys()).toMatchObject([
      { group: null, from: project.first, to: bad, branch: 'main', status: 'rolled_back' },
    ])
    project.ask('d-1', {})
    expect(await project.answer('d-1')).toMatchObject({ error: { code: 'wrong_state' } })
    // The branch is taken up again once it has gone on.
    project.git('switch', '--quiet', 'main')
    const better = project.commit('better')
    project.git('switch', '--quiet', '--detach', project.first)
    project.ask('d-2', {})
    expect(await project.answer('d-2')).toMatchObject({ ok: true, result: { to: better } })
    expect(project.git('rev-parse', '--abbrev-ref', 'HEAD')).toBe('main')
  })

  test('as it comes up, before it has said so: it counts as broken', async context => {
    const project = await openProject(context)
    project.commit('bad', program.hanging)
    project.ask('d-1', { resume_prompt: 'go on' })
    const pid = await patiently('the new one has started', async () =>
      project.lines('starts').find(line => line.includes('hangs')),
    )
    process.kill(Number.parseInt(pid, 10), 'SIGKILL')
    const { error } = await project.answer('d-1')
    expect(error).toMatchObject({ code: 'rolled_back' })
    expect(error?.message).toContain('it was ended by SIGKILL')
  })

  test('right after it has said that it is up: the next one finishes it', async context => {
    const project = await openProject(context)
    project.commit('two')
    writeFileSync(join(project.repo, 'fault'), 'deploy_up')
    project.ask('d-1', { resume_prompt: 'go on' })
    expect(await project.answer('d-1')).toMatchObject({ ok: true })
    await patiently('the agent is resumed', async () => project.heard().length > 0)
    expect(project.lines('starts').map(line => line.split(' ')[1])).toEqual(['one', 'two', 'two'])
    expect(project.heard()).toEqual(['go on'])
    expect(await project.deploys()).toMatchObject([{ status: 'done' }])
  })
})

describe.concurrent('the supervisor is killed', () => {
  test('and the daemon with it ends; the next one goes on', async context => {
    const project = await openProject(context)
    const before = await project.up()
    await project.end('SIGKILL')
    await patiently('the daemon ends', async () => !isAlive(before))
    project.supervise()
    expect(await project.up()).not.toBe(before)
    const second = project.supervise()
    // Not when it exits: what it said may still have to be read.
    expect(await new Promise(resolve => second.once('close', resolve))).toBe(1)
    expect(project.output()).toContain('Another supervisor looks after')
  })

  test('and the daemon behind a shell ends as well', async context => {
    const project = await openProject(context, {
      under: ['sh', '-c', `"${process.execPath}" start.mjs; exit $?`],
    })
    const before = await project.up()
    project.commit('two')
    project.ask('d-1', {})
    expect(await project.answer('d-1')).toMatchObject({ ok: true })
    const after = await project.up()
    expect(after).not.toBe(before)
    await project.end('SIGKILL')
    project.supervise()
    await patiently('another one runs', async () => {
      const pid = await project.pid()
      return pid !== undefined && pid !== after
    })
    expect(isAlive(after)).toBe(false)
    await project.end('SIGTERM')
    expect(await project.pid()).toBe(undefined)
  })

  test('between the end of the old one and the word of the new one: the next one watches anew', async context => {
    const project = await openProject(context, { healthMs: 3000 })
    project.commit('bad', program.hanging)
    project.ask('d-1', {})
    const started = () => project.lines('starts').filter(line => line.includes('hangs'))
    await patiently('the new one has started', async () => started().length === 1)
    await project.end('SIGKILL')
    project.supervise()
    expect(await project.answer('d-1')).toMatchObject({ error: { code: 'rolled_back' } })
    expect(started().map(line => isAlive(Number.parseInt(line, 10)))).toEqual(started().map(() => false))
    expect(project.git('rev-parse', 'HEAD')).toBe(project.first)
  })

  test('while it goes back: the next one goes on with that', async context => {
    const project = await openProject(context, {
      build: ['cp name built', 'if [ -e slow ]; then echo $$ > building; sleep 1000; fi'],
    })
    project.commit('bad', program.broken.replace('process.exit', `appendFileSync('slow', ''); process.exit`))
    project.ask('d-1', { resume_prompt: 'go on' })
    const building = await patiently('it goes back', async () => project.lines('building')[0])
    await project.end('SIGKILL')
    project.git('clean', '--quiet', '--force', 'slow')
    project.supervise()
    expect(await project.answer('d-1')).toMatchObject({ error: { code: 'rolled_back' } })
    expect(isAlive(Number(building))).toBe(false)
    expect(project.git('rev-parse', 'HEAD')).toBe(project.first)
    await patiently('the agent is resumed', async () => project.heard().length > 0)
    expect(project.heard()).toHaveLength(1)
    const handover: unknown = JSON.parse(readFileSync(join(project.data, 'state', 'deploy.json'), 'utf8'))
    expect(handover).toMatchObject({ status: 'up' })
    expect(existsSync(join(project.repo, 'slow'))).toBe(false)
  })
})

const analyze = findProgram('systemd-analyze')

test.skipIf(analyze === undefined)('systemd understands the unit', () => {
  const folder = mkdtempSync(join(tmpdir(), 'hatchway-unit-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'hatchway.service')
  const unit = readFileSync(join(projectRoot, 'units', 'hatchway.service'), 'utf8')
  writeFileSync(file, unit.replaceAll('/opt/hatchway', projectRoot).replace('User=hatchway', 'User=root'))
  const said = execFileSync(analyze ?? '', ['verify', '--man=no', file], { encoding: 'utf8' })
  expect(said).toBe('')
})
