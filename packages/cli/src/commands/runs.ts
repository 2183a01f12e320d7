import type { RunAnswer, TranscriptAnswer } from '@hatchway/host/api'
import { call, family, list } from '../command.ts'
import { facts, quoted } from '../facts.ts'
import { briefId, duration, timeColumn, when } from '../format.ts'
import { choice, group, limit, required, text } from '../inputs.ts'
import { url } from '../session.ts'
import type { Column } from '../table.ts'
import { visible } from '../text.ts'

export const columns: Column<RunAnswer>[] = [
  { title: 'ID', value: run => run.id, brief: briefId },
  timeColumn('STARTED', run => run.started_at),
  { title: 'GROUP', value: run => run.group, flexible: true },
  {
    title: 'KIND',
    value: run => (run.task_id === null ? run.kind : `${run.kind} ${run.task_id}`),
    flexible: true,
  },
  { title: 'SANDBOX', value: run => run.sandbox, spare: true },
  { title: 'STATUS', value: run => run.status },
  { title: 'TOOK', value: duration, right: true },
  { title: 'RESULT', value: run => run.error ?? run.result ?? '-', flexible: true },
]

/** An image may contain an agent of its own. */
const agentOf = ({ driver, image, sandbox }: RunAnswer) =>
  image === null
    ? `${driver} in ${sandbox}`
    : `${driver === 'image' ? '' : `${driver} from `}${image} in ${sandbox}`

const details = (run: TranscriptAnswer): string[] => [
  ...facts([
    ['id', run.id],
    ['group', run.group],
    ['kind', run.kind],
    ...(run.task_id === null ? [] : [['task', run.task_id] as const]),
    ['agent', agentOf(run)],
    ['session', run.session_id ?? '-'],
    ['status', run.status],
    ['started', when(run.started_at)],
    ['ended', when(run.ended_at)],
    ['error', run.error ?? '-'],
  ]),
  ...run.steps.flatMap(({ at, kind, name, text }) => [
    `\n${when(at)}  ${visible(kind)}${name === null ? '' : ` ${visible(name)}`}`,
    ...quoted(text),
  ]),
]

export default family('runs', 'inspect and stop runs of agents', [
  list('list', 'list the newest runs, oldest first', {
    example: '--group family',
    input: {
      group,
      status: choice('status', 'only this status', ['running', 'done', 'failed', 'stopped']),
      task: text('id', 'only runs of this task'),
      limit: limit(100),
    },
    rows: (client, api, { group, status, task, limit }) =>
      client.get(url`/runs?${{ group, status, task, limit }}`, api.runsAnswer),
    columns,
    empty: 'No runs.',
  }),
  call('show', 'show a run with its transcript', {
    example: '0198c2d4-1111-7000-8000-000000000000',
    input: { id: required('its id, or the start of it') },
    call: (client, api, { id }) => client.get(url`/runs/${id}`, api.transcriptAnswer),
    print: details,
  }),
  call('stop', 'stop a run and tell its chat', {
    example: 'family',
    input: { run: required('the run’s id, the start of it, or the folder of its group') },
    call: (client, api, { run }) => client.post(url`/runs/${run}/stop`, undefined, api.runAnswer),
    print: run => `Stopped: ${visible(run.group)}, run ${run.id}.`,
  }),
])
