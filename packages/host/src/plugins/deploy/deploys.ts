import { join } from 'node:path'
import { type ErrorCode, type Group, type Outcome, refusal } from '@hatchway/protocol'
import type { Logger } from 'pino'
import type { Fault } from '../../base/fault.ts'
import type { Step, Work } from '../../commands/service-tools.ts'
import type { DeploySettings } from '../../config/deploy.ts'
import { ServiceRefusal } from '../../services/define.ts'
import { carried, deployContext } from '../../store/contexts.ts'
import type { DeployEnd, DeployRow, NewDeploy } from '../../store/deploys.ts'
import type { Store, Transaction } from '../../store/types.ts'
import { checkoutIn } from '../../supervisor/checkout.ts'
import { endCommands, runCommand, shown } from '../../supervisor/command.ts'
import { type Handover, installationOf, readHandover, writeHandover } from '../../supervisor/handover.ts'
import { type DeployInput, deployInput } from './input.ts'

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
  stop(): Promise<void>
}

export interface DeploysOptions {
  settings: DeploySettings
  /** the hand-over file of this data directory */
  handover: string
  isSupervised: boolean
  store: Store
  environment: NodeJS.ProcessEnv
  /** ends this process, gracefully; `code` is for whoever looks at it */
  restart(code: number): void
  /** something for an agent is stored */
  told(): void
  log: Logger
  fault: Fault
  now(): number
}

/** "try again": ended on purpose, to be started again */
const restartCode = 75
const ownCheckout = join(import.meta.dirname, '..', '..', '..', '..', '..')
const slackMs = 300_000
/** of those that a deploy brings, on the card of whoever is asked */
const shownCommits = 10
const named = (revision: string) => revision.slice(0, 12)

export function createDeploys(options: DeploysOptions): Deploys {
  const { settings, handover: path, store, log, fault, now } = options
  const { deploys } = store
  const directory = settings.directory ?? ownCheckout
  const checkout = checkoutIn(directory, options.environment)
  const installation = installationOf(path)
  const leaving = new AbortController()
  const waiting = new Map<number, (() => void)[]>()
  /** one at a time */
  let isBusy = false

  const before = readHandover(path)
  const left = deploys.open()
  /** handed over to this process, or to one before it that did not get to say so */
  let pending = before?.status === 'building' ? undefined : left.find(({ id }) => id === before?.id)
  /** the one before ended while it built: what is checked out has not come up yet */
  let unproven = before?.status === 'building' ? before : undefined
  const interrupted = left.filter(row => row !== pending)

  const problem =
    settings.enabled === 'no'
      ? 'This host is not deployed by agents: deploy.enabled is “no” in its configuration.'
      : options.isSupervised
        ? undefined
        : 'This host cannot be deployed: nobody would start it again. Run it with hatchway supervise.'

  /** What this process runs, which is what was checked out when it started. */
  const running: Promise<string> =
    problem === undefined || pending ? checkout.head() : Promise.reject(new Error(problem))
  running.catch(() => {})

  const settle = async (row: DeployRow, end: DeployEnd, hasRestarted: boolean): Promise<void> => {
    const at = now()
    const isFirst = store.transaction(transaction => {
      if (!transaction.endDeploy(row.id, end, at)) return false
      note(transaction, row, end, at)
      const group = row.group === null ? undefined : transaction.group(row.group)
      // A restart has ended the session that asked; and who is given no receipt has to hear of a failure somehow.
      if (group && row.resumePrompt !== null && (hasRestarted || !row.isAnswered)) {
        if (row.sessionId !== null) transaction.adoptSession(group.folder, row.sessionId)
        carry(transaction, group.folder, row.request, at)
        transaction.receive(wordFor(group, `deploy:${row.id}`, row.resumePrompt, end.error, at))
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
      options.told()
    }
    for (const heard of waiting.get(row.id) ?? []) heard()
    waiting.delete(row.id)
  }

  const ended = async (id: number, signal: AbortSignal): Promise<object> => {
    if (deploys.deploy(id)?.endedAt === null) {
      await new Promise<void>((resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason), { once: true })
        waiting.set(id, [...(waiting.get(id) ?? []), resolve])
      })
    }
    const row = deploys.deploy(id)
    if (row?.status === 'done') return { status: 'deployed', from: row.from, to: row.to }
    throw new ServiceRefusal(
      row?.code ?? 'internal',
      row?.error ?? 'Nothing is known of this deploy any more.',
    )
  }

  /** What runs, and that nothing speaks against another revision; before anything is done. */
  const examine = async (): Promise<string> => {
    if (problem !== undefined) throw new ServiceRefusal('unavailable', problem)
    const from = await running.catch(error => {
      throw new ServiceRefusal('unavailable', `${directory} is no git checkout: ${error.message}`)
    })
    const changes = await checkout.changes()
    if (changes.length > 0) {
      const more = changes.length > 20 ? `\n… and ${changes.length - 20} more` : ''
      throw new ServiceRefusal(
        'dirty_tree',
        `Tracked files have changes that are not committed:\n${changes.slice(0, 20).join('\n')}${more}`,
      )
    }
    return from
  }

  /** What would be deployed, for whoever is asked whether it may. */
  const evidence = async () => {
    const from = await examine()
    const revision = (await branchAfterRollBack())?.tip ?? (await checkout.head())
    return { fields: { running: from, revision, ...(await checkout.log(from, revision, shownCommits)) } }
  }

  const prepare = async (asked: DeployInput): Promise<Pick<NewDeploy, 'from' | 'to' | 'branch'>> => {
    const from = await examine()
    await leaveRolledBack()
    const to = await checkout.head()
    const { head, rebuild, approved } = asked
    if (approved && approved.revision !== to) {
      throw new ServiceRefusal(
        'conflict',
        `${named(approved.revision)} was approved, and ${named(to)} is checked out by now. Ask again.`,
      )
    }
    if (head !== undefined && !isRevision(head, to)) {
      throw new ServiceRefusal(
        'conflict',
        `What is checked out is ${to}, not ${head}. Look before asking again.`,
      )
    }
    if (to === from && !rebuild) {
      throw new ServiceRefusal(
        'wrong_state',
        `There is nothing to deploy: ${named(to)} is what runs. With rebuild it is built and started again.`,
      )
    }
    return { from, to, branch: (await checkout.branch()) ?? null }
  }

  /** After a roll-back no branch is checked out. Once the branch has gone on, it is taken up again. */
  const branchAfterRollBack = async (): Promise<{ branch: string; tip: string } | undefined> => {
    if ((await checkout.branch()) !== undefined) return undefined
    const head = await checkout.head()
    const last = deploys.list(20).find(({ status, from }) => status === 'rolled_back' && from === head)
    if (!last?.branch) return undefined
    const tip = await checkout.tip(last.branch)
    if (tip === undefined || tip === last.to || tip === last.from) return undefined
    return { branch: last.branch, tip }
  }

  const leaveRolledBack = async () => {
    const next = await branchAfterRollBack()
    if (!next) return
    await checkout.switchTo(next.branch)
    log.info({ branch: next.branch, revision: next.tip }, 'the branch is checked out again after a roll-back')
  }

  const build = async (
    row: DeployRow,
    signal: AbortSignal,
    progress: (step: Step) => void,
  ): Promise<void> => {
    const commands = [...settings.build, ...settings.check]
    for (const [done, command] of commands.entries()) {
      progress({ progress: done, total: commands.length + 1, message: `running ${shown(command)}` })
      const failure = await runCommand(command, {
        directory,
        ms: settings.commandMs,
        installation,
        deploy: row.id,
        environment: options.environment,
        abort: signal,
      })
      if (leaving.signal.aborted) throw new ServiceRefusal('interrupted', stoppedWhileBuilding)
      if (signal.aborted)
        throw new ServiceRefusal('cancelled', 'The deploy was taken back while it was built.')
      if (failure !== undefined) {
        throw new ServiceRefusal(
          'check_failed',
          `Nothing was restarted: ${named(row.from)} runs on, and the checkout stays at ${named(row.to)}. ${failure}`,
        )
      }
    }
    const now = await checkout.head()
    if (now !== row.to) {
      throw new ServiceRefusal('conflict', `While ${named(row.to)} was built, ${named(now)} was checked out.`)
    }
    progress({ progress: commands.length, total: commands.length + 1, message: 'restarting' })
  }

  const handOver = ({ id, from, to }: DeployRow, status: 'building' | 'restarting') => {
    const { build, commandMs, healthMs } = settings
    writeHandover(path, { id, from, to, directory, build, commandMs, healthMs, status, reason: null })
  }

  /** Resolves when it is in the supervisor's hands. */
  const carryOut = async (row: DeployRow, signal: AbortSignal, progress: (step: Step) => void) => {
    try {
      await build(row, signal, progress)
      handOver(row, 'restarting')
    } catch (error) {
      await settle(row, failureFrom(error), false)
      isBusy = false
      throw error
    }
    fault('deploy_handed')
    deploys.restarting(row.id)
    fault('deploy_restarting')
    log.info({ deploy: row.id, from: row.from, to: row.to }, 'the host restarts with another revision')
    options.restart(restartCode)
  }

  const add = async (asked: Pick<NewDeploy, 'request' | 'group'>, input: DeployInput): Promise<DeployRow> => {
    if (isBusy || pending || unproven) throw new ServiceRefusal('wrong_state', 'Another deploy is under way.')
    isBusy = true
    try {
      const revisions = await prepare(input)
      const id = deploys.add({
        ...asked,
        ...revisions,
        isAnswered: input.is_answered,
        rebuild: input.rebuild,
        resumePrompt: input.resume_prompt ?? null,
        sessionId: input.session_id ?? null,
        createdAt: now(),
      })
      const row = deploys.deploy(id)
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
    evidence,
    timeoutMs:
      (2 * settings.build.length + settings.check.length) * settings.commandMs +
      2 * settings.healthMs +
      slackMs,
    async call(given, { seq, group, signal, progress }) {
      const input = deployInput.parse(given)
      const known = deploys.byRequest(seq)
      if (known) return ended(known.id, signal)
      try {
        const row = await add({ request: seq, group: group.folder }, input)
        await carryOut(row, AbortSignal.any([signal, leaving.signal]), progress)
        return await ended(row.id, signal)
      } catch (error) {
        tellUnanswered(seq, group, input, error)
        if (error instanceof ServiceRefusal && !deploys.byRequest(seq)) {
          store.taints.clear(group.folder, deployContext(seq))
        }
        throw error
      }
    },
  }

  /** Whoever asked without an id hears of a refusal in the way in which it would have heard of success. */
  const tellUnanswered = (
    seq: number,
    group: Pick<Group, 'folder' | 'jid'>,
    input: DeployInput,
    error: unknown,
  ) => {
    const { resume_prompt: prompt, is_answered: isAnswered } = input
    // What has a row is settled with it.
    if (isAnswered || prompt === undefined || deploys.byRequest(seq) || !(error instanceof ServiceRefusal))
      return
    store.transaction(transaction => {
      carry(transaction, group.folder, seq, now())
      return transaction.receive(wordFor(group, `deploy:request:${seq}`, prompt, error.message, now()))
    })
    options.told()
  }

  const background = new Set<Promise<void>>()
  const settleInterrupted = async () => {
    for (const row of interrupted) {
      await settle(row, { status: 'failed', code: 'interrupted', error: stoppedWhileBuilding }, false)
    }
  }
  const cleanUp = async () => {
    if (interrupted.length === 0) return
    await endCommands(installation)
    // Whoever hears that its deploy was interrupted may ask for the next one at once: it has to be possible then.
    if (!unproven) await settleInterrupted()
  }
  const failed = (error: unknown) => log.error({ err: error }, 'a deploy could not be looked after')
  const later = (work: Promise<void>) => {
    const noted = work.catch(failed).finally(() => background.delete(noted))
    background.add(noted)
  }
  later(cleanUp())

  return {
    work: problem === undefined ? work : undefined,
    problem,
    async begin(rebuild) {
      try {
        const row = await add({ request: null, group: null }, { rebuild, is_answered: false })
        later(
          carryOut(row, leaving.signal, () => {}).catch(error => {
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
        await settleInterrupted()
      }
      const row = pending
      if (!row || !before) return
      const end = await endOf(before, row, running)
      // First the supervisor: if we are killed now, the next one still finds the row open, and what became of it.
      if (before.status !== 'up') writeHandover(path, { ...before, status: 'up', reason: end.error })
      fault('deploy_up')
      await settle(row, end, true)
      pending = undefined
    },
    giveUp() {
      const isWatched = unproven !== undefined || (pending && before?.status === 'restarting')
      if (!isWatched || !options.isSupervised) return
      pending = undefined
      unproven = undefined
      options.restart(1)
    },
    async stop() {
      leaving.abort(new Error('The host is stopping.'))
      await Promise.all(background)
    },
  }
}

const stoppedWhileBuilding = 'The host stopped while the deploy was built or checked. Nothing was restarted.'

/** An abbreviated one will do, as git prints them. */
const isRevision = (asked: string, revision: string) =>
  asked === revision || (/^[0-9a-f]{7,}$/i.test(asked) && revision.startsWith(asked.toLowerCase()))

const failureFrom = (error: unknown): DeployEnd => {
  const code: ErrorCode = error instanceof ServiceRefusal ? error.code : 'internal'
  return { status: 'failed', code, error: error instanceof Error ? error.message : String(error) }
}

/** What became of it, now that a process runs that can say so. */
async function endOf(handover: Handover, row: DeployRow, running: Promise<string>): Promise<DeployEnd> {
  const { status, reason } = handover
  // Where git cannot be asked any more, the supervisor's word has to do.
  const revision = await running.catch(() => (status === 'rolled_back' ? row.from : row.to))
  const isBack = row.from !== row.to && revision === row.from
  const back = { status: 'rolled_back', code: 'rolled_back' } as const
  const failed = { status: 'failed', code: 'service_failed' } as const
  if (status === 'up' && reason !== null) return { ...(isBack ? back : failed), error: reason }
  if (status !== 'up' && isBack) {
    const branch = row.branch === null ? '' : `; ${row.branch} still has the other one`
    return {
      ...back,
      error: `${named(row.to)} did not come up, so ${named(row.from)} runs again, and is checked out without a branch${branch}. Why: ${reason ?? 'it was taken back'}`,
    }
  }
  if (status === 'failed') {
    return {
      ...failed,
      error: `${named(revision)} runs now, but did not come up at first, and there was no other to go back to. Why: ${reason}`,
    }
  }
  if (revision !== row.to) {
    return {
      status: 'failed',
      code: 'conflict',
      error: `${named(revision)} runs, as it was checked out before the host could start ${named(row.to)}.`,
    }
  }
  return { status: 'done', code: null, error: null }
}

const wordFor = (
  group: Pick<Group, 'folder' | 'jid'>,
  externalId: string,
  prompt: string,
  error: string | null,
  at: number,
) => ({
  group: group.folder,
  jid: group.jid,
  channel: 'host',
  externalId,
  sender: 'host',
  senderName: 'Hatchway',
  text: error === null ? prompt : `The deploy did not succeed. ${error}\n\n${prompt}`,
  status: 'waiting' as const,
  createdAt: at,
})

/** Whoever is told it has read what the agent had that left it. */
const carry = (transaction: Transaction, folder: string, request: number | null, at: number) => {
  if (request === null) return
  transaction.addTaint(folder, carried, transaction.taint(folder, deployContext(request)), 'deploy', at)
}

const note = (transaction: Transaction, row: DeployRow, end: DeployEnd, at: number) =>
  transaction.audit({
    at,
    group: row.group,
    actor: row.request === null ? 'operator' : 'agent',
    action: 'deploy',
    summary:
      row.from === row.to
        ? `build ${named(row.to)} and start it again`
        : `replace ${named(row.from)} by ${named(row.to)}`,
    outcome: end.status === 'done' ? 'deployed' : end.status,
    reason: end.error,
    tookMs: at - row.createdAt,
    details: { deploy: row.id, from: row.from, to: row.to },
  })
