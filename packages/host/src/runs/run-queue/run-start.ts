import type { Group, RunInput, RunStart } from '@hatchway/protocol'
import type { ModelSettings } from '../../config/model.ts'
import { providers } from '../../config/providers.ts'
import { settingsOf, zoneOf } from '../../config.ts'
import { textWithFiles } from '../../store/attachment-text.ts'
import type { IncomingRow, RunRow } from '../../store/types.ts'
import { containerProtocols } from '../container-protocols/index.ts'
import { inputId } from '../input-box.ts'
import { interruptedRuns, interruptionNotice, sentIn } from '../notices.ts'
import type { Job, RunQueueOptions } from './types.ts'

/** What one run is for. */
export interface NewRun {
  id: string
  group: Group
  /** the messages that wait; none for a task */
  rows: readonly IncomingRow[]
  /** undefined: it is a chat */
  job: Job | undefined
}

const contextKept = 50
const runsChecked = 10

export const isIsolated = ({ job }: Pick<NewRun, 'job'>): boolean => job?.task.context_mode === 'isolated'

/** What has to be known for it. */
type Known = Pick<
  RunQueueOptions,
  'config' | 'store' | 'instructions' | 'lately' | 'wipedAt' | 'personZone' | 'now'
>

/** The document that the run begins with. */
export function runStart(options: Known, run: NewRun, refusals: readonly string[]): RunStart {
  const { config, store } = options
  const { group, rows, job } = run
  const settings = settingsOf(config, group.folder)
  const timezone = job?.task.timezone ?? zoneOf(config, group.folder)
  const heard = (row: IncomingRow) => inputOf(row, options.personZone?.(row), timezone)
  const command = settings.command ?? config.agents.command
  const told = [settings.instructions, ...(options.instructions?.(group.folder) ?? [])].filter(Boolean)
  const notices = [...interruption(options, run), ...refusals]
  return {
    version: 1,
    run_id: run.id,
    kind: job ? 'task' : 'chat',
    group: { folder: group.folder, name: group.name, jid: group.jid, main: group.main },
    assistant: config.agents.assistant,
    timezone,
    session_id: isIsolated(run) ? null : (store.session(group.folder) ?? null),
    model: job?.task.model ?? (settings.model ?? config.model).name ?? null,
    ...spokenIn(settings.model ?? config.model),
    task: job ? { id: job.task.id, occurrence_id: job.occurrence.id, script: job.task.script } : null,
    inputs: job ? [promptOf(job, options.now())] : rows.map(heard),
    context: contextOf(options, run).map(heard),
    ...(notices.length === 0 ? {} : { notices }),
    ...(settings.repo === undefined ? {} : { repository: settings.repo }),
    driver: {
      name: settings.driver ?? config.agents.driver,
      ...(command === undefined ? {} : { command: [...command] }),
      ...(told.length === 0 ? {} : { instructions: told.join('\n') }),
    },
    events: config.events,
  }
}

/** The API of the model, and how much it can hold; left out: whatever the agent takes as usual. */
const spokenIn = ({ provider, context }: ModelSettings): Pick<RunStart, 'model_api' | 'model_context'> => ({
  ...(provider === undefined ? {} : { model_api: providers[provider].apis[0] }),
  ...(context === undefined ? {} : { model_context: context }),
})

/** The run as it is stored at its start. */
export const runRow = ({ group, job }: NewRun, start: RunStart, startedAt: number): RunRow => ({
  id: start.run_id,
  group: group.folder,
  kind: start.kind,
  taskId: job?.task.id ?? null,
  occurrenceId: job?.occurrence.id ?? null,
  sandbox: 'none',
  image: null,
  driver: containerProtocols[group.dialect].ownRunner ? start.driver.name : 'image',
  sessionId: start.session_id,
  status: 'running',
  startedAt,
  endedAt: null,
  result: null,
  error: null,
})

/** What was said without calling the agent, before the last message that calls it. */
function contextOf(
  { store, wipedAt }: Pick<Known, 'store' | 'wipedAt'>,
  { group, rows, job }: NewRun,
): readonly IncomingRow[] {
  if (job) return []
  const last = rows.at(-1)?.id ?? 0
  // The host's own notes quote what the group had said.
  const since = wipedAt?.(group.folder) ?? 0
  return store
    .incoming({ group: group.folder, status: 'context' })
    .filter(({ id, channel, createdAt }) => id < last && (channel !== 'host' || createdAt >= since))
    .slice(-contextKept)
}

/** Whoever has sent half of an answer must not send it twice. */
function interruption(options: Known, { group, rows }: NewRun): readonly string[] {
  const { folder, jid } = group
  const since = options.wipedAt?.(folder) ?? 0
  const lately = options.store
    .runs({ group: folder, limit: runsChecked })
    .filter(({ startedAt }) => startedAt >= since)
  const runs = interruptedRuns(rows, options.store.run, lately)
  if (runs.length === 0) return []
  const asked = rows[0]?.createdAt ?? 0
  return [interruptionNotice(sentIn(runs, asked, options.lately?.(folder) ?? []), jid)]
}

const inputOf = (row: IncomingRow, zone: string | undefined, usual: string): RunInput => ({
  id: inputId(row.id),
  text: textWithFiles(row),
  sender: row.sender,
  sender_name: row.senderName,
  timestamp: new Date(row.createdAt).toISOString(),
  ...(zone !== undefined && zone !== usual && { timezone: zone }),
})

const promptOf = ({ task, occurrence }: Job, now: number): RunInput => ({
  id: occurrence.id,
  text: task.prompt,
  sender: 'schedule',
  sender_name: 'Schedule',
  timestamp: new Date(now).toISOString(),
})
