import { type Group, type Outcome, refusal } from '@hatchway/protocol'
import { project } from '../../base/parts.ts'
import type { Step, Work } from '../../commands/service-tools.ts'
import type { BuiltInHost } from '../../plugin-api/types.ts'
import { ServiceRefusal } from '../../services/define.ts'
import { checkoutIn } from '../../supervisor/checkout.ts'
import { endCommands } from '../../supervisor/command.ts'
import { type Handover, installationOf, readHandover, writeHandover } from '../../supervisor/handover.ts'
import { build } from './build.ts'
import { audit, callAgent, endOf, failureFrom, stoppedWhileBuilding } from './ending.ts'
import type { DeployEnd, DeployRow, NewDeploy } from './entity.ts'
import { type DeployInput, deployContext, deployInput } from './input.ts'
import { createRevisions } from './revisions.ts'
import type { DeploySettings } from './settings.ts'
import type { DeployTable } from './table.ts'

/**
 * Restarts with other code. The process that is asked builds and checks, hands over to the supervisor, and ends; the
 * process that comes up says so, settles what is left in the store, and gives the answer. Whichever is killed at
 * whatever moment: the hand-over tells the next one how far it came.
 */
export interface Deploys {
  /** undefined: this host cannot be deployed, see `problem` */
  work: Work | undefined
  problem: string | undefined
  /** an operator asks; the outcome says whether it is under way, not how it ends */
  begin(rebuild: boolean): Promise<Outcome>
  /** everything is ready: what was handed over to this process has come up */
  up(): Promise<void>
  /** this process cannot do its work: if it was just deployed it ends, so that the one before can come back */
  giveUp(): void
  /** resolves when nothing is under way any more; `host.signal` has ended it */
  stop(): Promise<void>
}

export interface DeploysOptions {
  host: Pick<
    BuiltInHost<DeploySettings>,
    'settings' | 'store' | 'transaction' | 'environment' | 'signal' | 'log' | 'fault' | 'now'
  >
  table: DeployTable
  /** the hand-over file of this data directory */
  handover: string
  isSupervised: boolean
  /** ends this process, gracefully; `code` is for whoever looks at it */
  restart(code: number): void
}

/** "try again": ended on purpose, to be started again */
const restartCode = 75
const slackMs = 300_000

export function createDeploys(options: DeploysOptions): Deploys {
  const { host, table, handover: path } = options
  const { settings, store, environment, log, fault } = host
  const now = () => host.now().getTime()
  const directory = settings.directory ?? project
  const checkout = checkoutIn(directory, environment)
  const installation = installationOf(path)
  const waiting = new Map<number, (() => void)[]>()
  /** one at a time */
  let isBusy = false

  const before = readHandover(path)
  const left = table.open()
  /** handed over to this process, or to one before it that did not get to say so */
  let pending = before?.status === 'building' ? undefined : left.find(({ id }) => id === before?.id)
  /** the one before ended while it built: what is checked out has not come up yet */
  let unproven = before?.status === 'building' ? before : undefined
  const interrupted = left.filter(row => row !== pending)

  const problem = problemWith(settings, options.isSupervised)
  /** What this process runs, which is what was checked out when it started. */
  const running: Promise<string> =
    problem === undefined || pending ? checkout.head() : Promise.reject(new Error(problem))
  running.catch(() => {})
  const revisions = createRevisions({ directory, checkout, running, problem, table, log })

  const settle = (row: DeployRow, end: DeployEnd, hasRestarted: boolean): void => {
    const at = now()
    const isFirst = host.transaction((transaction, notify) => {
      if (!table.end(row.id, end, at)) return false
      audit(transaction, row, end, at)
      const group = row.group === null ? undefined : transaction.group(row.group)
      const { resumePrompt: prompt, sessionId, request } = row
      // A restart has ended the session that asked; and who is given no receipt has to hear of a failure somehow.
      if (group && prompt !== null && (hasRestarted || !row.isAnswered)) {
        if (sessionId !== null) transaction.adoptSession(group.folder, sessionId)
        const externalId = `deploy:${row.id}`
        callAgent(transaction, group, { externalId, request, prompt, error: end.error, at })
        notify({ kind: 'agent_called' })
      }
      return true
    })
    if (isFirst) {
      if (row.group !== null && row.request !== null)
        store.taints.clear(row.group, deployContext(row.request))
      log[end.status === 'done' ? 'info' : 'error'](
        { deploy: row.id, from: row.from, to: row.to, reason: end.error },
        `a deploy has ended: ${end.status}`,
      )
    }
    for (const heard of waiting.get(row.id) ?? []) heard()
    waiting.delete(row.id)
  }

  const ended = async (id: number, signal: AbortSignal): Promise<object> => {
    if (table.deploy(id)?.endedAt === null) {
      await new Promise<void>((resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason), { once: true })
        waiting.set(id, [...(waiting.get(id) ?? []), resolve])
      })
    }
    const row = table.deploy(id)
    if (row?.status === 'done') return { status: 'deployed', from: row.from, to: row.to }
    throw new ServiceRefusal(
      row?.code ?? 'internal',
      row?.error ?? 'Nothing is known of this deploy any more.',
    )
  }

  const handOver = (
    { id, from, to }: Pick<DeployRow, 'id' | 'from' | 'to'>,
    status: 'building' | 'restarting' | 'up',
  ) => {
    const { build: commands, commandMs, healthMs } = settings
    writeHandover(path, {
      ...{ id, from, to, directory, commandMs, healthMs, status },
      build: commands,
      reason: null,
    })
  }

  /** Resolves when it is in the supervisor's hands. */
  const carryOut = async (row: DeployRow, signal: AbortSignal, progress: (step: Step) => void) => {
    try {
      const stopping = host.signal
      await build(row, {
        ...{ settings, directory, checkout, installation, environment, signal, stopping, progress },
      })
      handOver(row, 'restarting')
    } catch (error) {
      settle(row, failureFrom(error), false)
      isBusy = false
      throw error
    }
    fault('deploy_handed')
    table.restarting(row.id)
    fault('deploy_restarting')
    log.info({ deploy: row.id, from: row.from, to: row.to }, 'the host restarts with another revision')
    options.restart(restartCode)
  }

  const add = async (asked: Pick<NewDeploy, 'request' | 'group'>, input: DeployInput): Promise<DeployRow> => {
    if (isBusy || pending || unproven) throw new ServiceRefusal('wrong_state', 'Another deploy is under way.')
    isBusy = true
    try {
      const id = table.add({
        ...asked,
        ...(await revisions.prepare(input)),
        isAnswered: input.is_answered,
        rebuild: input.rebuild,
        resumePrompt: input.resume_prompt ?? null,
        sessionId: input.session_id ?? null,
        createdAt: now(),
      })
      const row = table.deploy(id)
      if (!row) throw new Error('the deploy that was just stored is not there')
      handOver(row, 'building')
      fault('deploy_stored')
      return row
    } catch (error) {
      isBusy = false
      throw error
    }
  }

  const work: Work = {
    name: 'deploy',
    repeatable: true,
    evidence: revisions.evidence,
    timeoutMs:
      (2 * settings.build.length + settings.check.length) * settings.commandMs +
      2 * settings.healthMs +
      slackMs,
    async call(given, { seq, group, signal, progress }) {
      const input = deployInput.parse(given)
      const known = table.byRequest(seq)
      if (known) return ended(known.id, signal)
      try {
        const row = await add({ request: seq, group: group.folder }, input)
        await carryOut(row, signal, progress)
        return await ended(row.id, signal)
      } catch (error) {
        // What has a row is settled with it.
        if (error instanceof ServiceRefusal && !table.byRequest(seq)) refuse(seq, group, input, error.message)
        throw error
      }
    },
  }

  /** Whoever asked without an id hears of a refusal in the way in which it would have heard of success. */
  const refuse = (
    request: number,
    group: Pick<Group, 'folder' | 'jid'>,
    { resume_prompt: prompt, is_answered: isAnswered }: DeployInput,
    error: string,
  ) => {
    if (!isAnswered && prompt !== undefined) {
      const externalId = `deploy:request:${request}`
      host.transaction((transaction, notify) => {
        callAgent(transaction, group, { externalId, request, prompt, error, at: now() })
        notify({ kind: 'agent_called' })
      })
    }
    store.taints.clear(group.folder, deployContext(request))
  }

  /** What the supervisor went back from though nobody had deployed it: listed as an operator's. */
  const addUnasked = async ({ from, to }: Handover) =>
    table.deploy(
      table.add({
        ...{ from, to, branch: (await checkout.branchAt(to)) ?? null, rebuild: false, createdAt: now() },
        ...{ request: null, group: null, isAnswered: false, resumePrompt: null, sessionId: null },
      }),
    )

  /** For the supervisor, which watches whatever else it finds checked out. */
  const noteRunning = async () => {
    if (problem !== undefined) return
    const revision = await running.catch(() => undefined)
    const last = readHandover(path)
    // What is under way is the supervisor's to end.
    if (revision === undefined || isBusy || (last && last.status !== 'up')) return
    handOver({ id: last?.id ?? 0, from: revision, to: revision }, 'up')
  }

  const background = new Set<Promise<void>>()
  const settleInterrupted = () => {
    for (const row of interrupted)
      settle(row, { status: 'failed', code: 'interrupted', error: stoppedWhileBuilding }, false)
  }
  const cleanUp = async () => {
    if (interrupted.length === 0) return
    await endCommands(installation)
    // Whoever hears that its deploy was interrupted may ask for the next one at once: it has to be possible then.
    if (!unproven) settleInterrupted()
  }
  const inBackground = (promise: Promise<void>) => {
    const noted = promise
      .catch((error: unknown) => log.error({ err: error }, 'a deploy could not be looked after'))
      .finally(() => background.delete(noted))
    background.add(noted)
  }
  inBackground(cleanUp())

  return {
    work: problem === undefined ? work : undefined,
    problem,
    async begin(rebuild) {
      try {
        const row = await add({ request: null, group: null }, { rebuild, is_answered: false })
        inBackground(
          carryOut(row, host.signal, () => {}).catch(error => {
            if (!(error instanceof ServiceRefusal)) throw error
          }),
        )
        return { ok: true, result: { id: row.id, from: row.from, to: row.to, status: row.status } }
      } catch (error) {
        if (error instanceof ServiceRefusal) return { ok: false, error: refusal(error.code, error.message) }
        throw error
      }
    },
    async up() {
      if (unproven) {
        writeHandover(path, { ...unproven, status: 'up', reason: stoppedWhileBuilding })
        unproven = undefined
        settleInterrupted()
      }
      if (before?.status === 'rolled_back') pending ??= await addUnasked(before)
      if (pending && before) {
        const end = await endOf(before, pending, running)
        // First the supervisor: if we are killed now, the next one still finds the row open, and what became of it.
        if (before.status !== 'up') writeHandover(path, { ...before, status: 'up', reason: end.error })
        fault('deploy_up')
        settle(pending, end, true)
        pending = undefined
      }
      await noteRunning()
    },
    giveUp() {
      const isWatched = unproven !== undefined || (pending && before?.status === 'restarting')
      if (!isWatched || !options.isSupervised) return
      pending = undefined
      unproven = undefined
      options.restart(1)
    },
    async stop() {
      await Promise.all(background)
    },
  }
}

const problemWith = ({ enabled }: DeploySettings, isSupervised: boolean): string | undefined => {
  if (enabled === 'no')
    return 'This host is not deployed by agents: deploy.enabled is “no” in its configuration.'
  return isSupervised
    ? undefined
    : 'This host cannot be deployed: nobody would start it again. Run it with hatchway supervise.'
}
