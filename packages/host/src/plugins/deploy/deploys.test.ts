import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { WorkContext } from '../../commands/service-tools.ts'
import { type ConfigInput, configSchema } from '../../config.ts'
import type { PluginHost } from '../../plugin-api/types.ts'
import { openStore } from '../../store/sqlite.ts'
import { handoverFile, readHandover, writeHandover } from '../../supervisor/handover.ts'
import { isFor, takeSupervisor, whenSupervisorEnds } from '../../supervisor/supervised.ts'
import { makeRepository } from '../../supervisor/testing.ts'
import { createDeploys } from './deploys.ts'
import { createDeployTable } from './table.ts'

const log = pino({ level: 'silent' })
const patience = { timeout: 20_000 }

/** A store and a checkout, and as many processes one after the other as a test wants to pretend. */
function open(settings: ConfigInput['deploy'] = {}) {
  const data = mkdtempSync(join(tmpdir(), 'hatchway-deploys-'))
  const directory = join(data, 'project')
  mkdirSync(directory)
  mkdirSync(join(data, 'state'))
  const store = openStore({ path: join(data, 'state', 'hatchway.db'), durability: 'process', prepare: false })
  onTestFinished(() => {
    store.close()
    rmSync(data, { recursive: true, force: true })
  })
  store.transaction(transaction =>
    transaction.insertGroup({
      folder: 'main',
      jid: 'local:main',
      name: 'Main',
      main: true,
      dialect: 'hatchway',
      trigger: null,
      requires_trigger: false,
      channel: null,
      added_at: new Date(0).toISOString(),
      last_activity: null,
    }),
  )
  const { git, commit } = makeRepository(directory)
  const first = commit('one')
  const handover = handoverFile(data)
  const restarts: number[] = []
  const { sql } = store.pluginTables({ name: 'deploy', tables: ['deploys'] })
  const transaction: PluginHost['transaction'] = work =>
    store.transaction(kernel => work(kernel, effect => called.push(effect.kind)))
  const called: string[] = []
  const table = createDeployTable({ sql, transaction })
  const begin = (more: { isSupervised?: boolean } = {}) => {
    const closing = new AbortController()
    const deploys = createDeploys({
      host: {
        settings: configSchema.parse({ deploy: { enabled: 'yes', directory, ...settings } }).deploy,
        store,
        transaction,
        environment: process.env,
        signal: closing.signal,
        log,
        fault: () => {},
        now: () => new Date(),
      },
      table,
      handover,
      isSupervised: more.isSupervised ?? true,
      restart: code => restarts.push(code),
    })
    return {
      ...deploys,
      stop() {
        closing.abort(new Error('The host is stopping.'))
        return deploys.stop()
      },
    }
  }
  const call = (deploys: ReturnType<typeof begin>, seq: number, input: object, signal?: AbortSignal) => {
    const context: WorkContext = {
      group: { folder: 'main', jid: 'local:main', name: 'Main', main: true },
      requestId: `r-${seq}`,
      seq,
      signal: signal ?? new AbortController().signal,
      progress: () => {},
      log,
      timezone: 'UTC',
    }
    if (!deploys.work) throw new Error(deploys.problem)
    const answer = deploys.work.call({ rebuild: false, is_answered: true, ...input }, context)
    answer.catch(() => {})
    return answer
  }
  return {
    directory,
    store,
    git,
    commit,
    first,
    handover,
    restarts,
    begin,
    call,
    told: () => store.agents.incoming({ group: 'main' }).map(({ text }) => text),
    /** what the rest of the host is told */
    called,
    last: () => table.list(1)[0],
  }
}

test('a host that cannot be deployed says what is missing', () => {
  expect(open({ enabled: 'no' }).begin().problem).toContain('deploy.enabled')
  const one = open().begin({ isSupervised: false })
  expect(one.problem).toContain('hatchway supervise')
  expect(one.work).toBe(undefined)
})

test('one is under way at a time, also for an operator', async () => {
  const one = open({ build: ['touch building; exec sleep 1000'] })
  const deploys = one.begin()
  await deploys.begin(false)
  one.commit('two')
  const asked = new AbortController()
  const answer = one.call(deploys, 1, {}, asked.signal)
  await vi.waitFor(() => expect(existsSync(join(one.directory, 'building'))).toBe(true), patience)
  expect(await deploys.begin(true)).toMatchObject({ error: { code: 'wrong_state' } })
  await expect(one.call(deploys, 2, {})).rejects.toMatchObject({ code: 'wrong_state' })
  // Taken back, it ends what it has begun, and the next one may begin.
  asked.abort()
  await expect(answer).rejects.toMatchObject({ code: 'cancelled' })
  expect(one.last()).toMatchObject({ status: 'failed', code: 'cancelled' })
  expect(one.restarts).toEqual([])
  const begun = await deploys.begin(false)
  expect(begun).toMatchObject({ ok: true })
  await deploys.stop()
  expect(one.last()).toMatchObject({ status: 'failed', code: 'interrupted', group: null })
})

test('an interrupted deploy is answered once the next one can begin', async () => {
  const one = open({ build: ['touch building; exec sleep 1000'] })
  const killed = one.begin()
  await killed.begin(true)
  await vi.waitFor(() => expect(existsSync(join(one.directory, 'building'))).toBe(true), patience)
  // The next process finds the row open and the hand-over at "building", as after a kill.
  const next = one.begin()
  expect(await next.begin(true)).toMatchObject({ error: { code: 'wrong_state' } })
  expect(one.last()).toMatchObject({ endedAt: null })
  await next.up()
  expect(one.last()).toMatchObject({ status: 'failed', code: 'interrupted' })
  expect(await next.begin(true)).toMatchObject({ ok: true })
  await Promise.all([killed.stop(), next.stop()])
})

test('what is checked out while it is built is not what is started', async () => {
  const one = open({ build: ['touch building; while [ ! -e go ]; do sleep 0.05; done'] })
  const deploys = one.begin()
  // What it runs is what was there at its start.
  await deploys.begin(false)
  one.commit('two')
  const answer = one.call(deploys, 1, {})
  await vi.waitFor(() => expect(existsSync(join(one.directory, 'building'))).toBe(true), patience)
  one.commit('three')
  writeFileSync(join(one.directory, 'go'), '')
  await expect(answer).rejects.toMatchObject({ code: 'conflict' })
  expect(one.restarts).toEqual([])
  expect(readHandover(one.handover)?.status).toBe('building')
})

test('what was approved is what is deployed', async () => {
  const one = open()
  const deploys = one.begin()
  await deploys.begin(false)
  const second = one.commit('two')
  const context = { group: { folder: 'main', jid: 'local:main' }, signal: new AbortController().signal }
  const shown = await deploys.work?.evidence?.({}, context)
  expect(shown?.fields).toMatchObject({
    running: one.first,
    revision: second,
    commits: 1,
    newest: [expect.stringContaining('two')],
  })
  one.commit('three')
  const answer = one.call(deploys, 1, { approved: shown?.fields })
  await expect(answer).rejects.toMatchObject({
    code: 'conflict',
    message: expect.stringContaining('approved'),
  })
  expect(one.restarts).toEqual([])
})

test('the next process answers, resumes the agent with its own session, and does so once', async () => {
  const one = open()
  const before = one.begin()
  await before.begin(false)
  const two = one.commit('two')
  one.call(before, 7, { resume_prompt: 'go on', session_id: 's-1' })
  await vi.waitFor(() => expect(one.restarts).toEqual([75]), patience)
  expect(readHandover(one.handover)).toMatchObject({ from: one.first, to: two, status: 'restarting' })
  await before.stop()

  const after = one.begin()
  const answer = one.call(after, 7, { resume_prompt: 'go on', session_id: 's-1' })
  expect(await after.begin(true)).toMatchObject({ error: { code: 'wrong_state' } })
  expect(one.told()).toEqual([])
  await after.up()
  expect(await answer).toEqual({ status: 'deployed', from: one.first, to: two })
  await after.up()
  const third = one.begin()
  await third.up()
  expect(await one.call(third, 7, {})).toMatchObject({ status: 'deployed' })
  expect(one.told()).toEqual(['go on'])
  expect(one.called).toEqual(['agent_called'])
  expect(one.store.agents.session('main')).toBe('s-1')
  expect(readHandover(one.handover)).toMatchObject({ status: 'up', reason: null })
})

test('a session that the host knows is not exchanged', async () => {
  const one = open()
  one.store.agents.setSession('main', 'known')
  const before = one.begin()
  await before.begin(false)
  one.commit('two')
  one.call(before, 7, { resume_prompt: 'go on', session_id: 'claimed' })
  await vi.waitFor(() => expect(one.restarts).toEqual([75]), patience)
  await one.begin().up()
  expect(one.store.agents.session('main')).toBe('known')
})

test('a new process that cannot do its work ends, and is not up', async () => {
  const one = open()
  const before = one.begin()
  await before.begin(false)
  one.commit('two')
  one.call(before, 7, {})
  await vi.waitFor(() => expect(one.restarts).toEqual([75]), patience)
  const after = one.begin()
  after.giveUp()
  await after.up()
  expect(one.restarts).toEqual([75, 1])
  expect(readHandover(one.handover)?.status).toBe('restarting')
  // One that nothing was handed over to goes on as it is.
  writeHandover(one.handover, { ...handed(one), id: 99 })
  const other = one.begin()
  other.giveUp()
  expect(one.restarts).toEqual([75, 1])
})

const handed = (one: ReturnType<typeof open>) => {
  const found = readHandover(one.handover)
  if (!found) throw new Error('nothing was handed over')
  return found
}

test('whoever waits for no receipt is told of a refusal and of a failure, each once', async () => {
  const one = open({ check: ['echo it is bad; false'] })
  const deploys = one.begin()
  const quiet = { is_answered: false, resume_prompt: 'go on' }
  await expect(one.call(deploys, 1, quiet)).rejects.toMatchObject({ code: 'wrong_state' })
  await expect(one.call(deploys, 1, quiet)).rejects.toMatchObject({ code: 'wrong_state' })
  one.commit('two')
  await expect(one.call(deploys, 2, quiet)).rejects.toMatchObject({ code: 'check_failed' })
  await expect(one.call(deploys, 2, quiet)).rejects.toMatchObject({ code: 'check_failed' })
  const told = one.told()
  expect(told).toHaveLength(2)
  expect(told[0]).toMatch(/nothing to deploy.*\n\ngo on$/s)
  expect(told[1]).toMatch(/it is bad\n\ngo on$/s)
})

test('what builds knows nothing of the daemon’s secrets, and no program of ours takes itself for supervised', async () => {
  const one = open({ build: ['env > seen'] })
  vi.stubEnv('SAMPLE_API_KEY', 'sk-secret')
  vi.stubEnv('HATCHWAY_HANDOVER', one.handover)
  vi.stubEnv('HATCHWAY_SUPERVISOR', String(process.pid))
  onTestFinished(() => void vi.unstubAllEnvs())
  const supervisor = takeSupervisor(process.env)
  expect(supervisor).toEqual({ handover: one.handover, pid: process.pid })
  expect(takeSupervisor(process.env)).toBe(undefined)
  expect(supervisor && isFor(supervisor, one.handover)).toBe(true)
  expect(supervisor && isFor(supervisor, handoverFile('/nowhere'))).toBe(false)
  const deploys = one.begin()
  await deploys.begin(true)
  await vi.waitFor(() => expect(one.restarts).toEqual([75]), patience)
  const seen = readFileSync(join(one.directory, 'seen'), 'utf8')
  expect(seen).toMatch(/^PATH=/m)
  expect(seen).not.toMatch(/secret|HANDOVER|SUPERVISOR/)
})

test('a daemon without a channel sees that its supervisor is gone', async () => {
  const child = spawn('sleep', ['1000'])
  const gone = vi.fn()
  whenSupervisorEnds({ handover: '', pid: child.pid ?? 0 }, gone)
  child.kill('SIGKILL')
  await vi.waitFor(() => expect(gone).toHaveBeenCalledTimes(1), patience)
})

test('whoever is told to go on has read what the agent had that left the word', async () => {
  const one = open({ check: ['false'] })
  const contexts = () => one.store.taints.all().map(({ context }) => context)
  const read = (seq: number) =>
    one.store.transaction(transaction =>
      transaction.addTaint('main', `deploy:${seq}`, { corrupted: true, secret: false }, 'deploy', 1),
    )
  const deploys = one.begin()
  await read(1)
  // Nothing is told where there is nothing to deploy, and an answer is given.
  await expect(one.call(deploys, 1, { resume_prompt: 'go on' })).rejects.toMatchObject({
    code: 'wrong_state',
  })
  expect(contexts()).toEqual([])
  one.commit('two')
  await read(2)
  const unanswered = { resume_prompt: 'go on', is_answered: false }
  await expect(one.call(deploys, 2, unanswered)).rejects.toMatchObject({ code: 'check_failed' })
  expect(one.told()).toHaveLength(1)
  expect(contexts()).toEqual(['carried'])
})
