import type { RunAnswer, TranscriptAnswer } from '@hatchway/host/api'
import { type Command, Option } from 'commander'
import { briefId, briefTime, once, printList, when } from '../list.ts'
import { type CommonOptions, common, positive } from '../options.ts'
import { printJson, printLine } from '../output.ts'
import { withClient } from '../session.ts'
import type { Column } from '../table.ts'
import { visible, visibleLines } from '../text.ts'

interface ListOptions extends CommonOptions {
  group?: string
  status?: string
  task?: string
  limit: number
}

const seconds = ({ started_at, ended_at }: RunAnswer) =>
  ended_at === null ? '-' : `${((Date.parse(ended_at) - Date.parse(started_at)) / 1000).toFixed(1)} s`

export const columns: Column<RunAnswer>[] = [
  { title: 'ID', value: run => run.id, brief: briefId },
  { title: 'STARTED', value: run => when(run.started_at), brief: briefTime },
  { title: 'GROUP', value: run => run.group, flexible: true },
  {
    title: 'KIND',
    value: run => (run.task_id === null ? run.kind : `${run.kind} ${run.task_id}`),
    flexible: true,
  },
  { title: 'SANDBOX', value: run => run.sandbox, spare: true },
  { title: 'STATUS', value: run => run.status },
  { title: 'TOOK', value: seconds, right: true },
  { title: 'RESULT', value: run => run.error ?? run.result ?? '-', flexible: true },
]

export function addRuns(program: Command): void {
  const runs = program.command('runs').description('what agents did, run by run')

  common(runs.command('list').description('the newest runs, oldest first'), 'runs list --group family')
    .option('--group <folder>', 'only this group’s')
    .addOption(
      new Option('--status <status>', 'only these').choices(['running', 'done', 'failed', 'stopped']),
    )
    .option('--task <id>', 'only this task’s')
    .option('--limit <number>', 'so many, at most 10000', positive, 100)
    .action((options: ListOptions) =>
      withClient(options, (client, api) => {
        const query = new URLSearchParams({ limit: String(options.limit) })
        if (options.group !== undefined) query.set('group', options.group)
        if (options.status !== undefined) query.set('status', options.status)
        if (options.task !== undefined) query.set('task', options.task)
        return printList(
          options,
          once(client.get(`/runs?${query}`, api.runsAnswer)),
          columns,
          'No agent has run yet.',
        )
      }),
    )

  common(
    runs.command('show').description('one run with its transcript'),
    'runs show 0198c2d4-1111-7000-8000-000000000000',
  )
    .argument('<id>', 'its id, or the beginning of it')
    .action(async (id: string, options: CommonOptions) => {
      const run = await withClient(options, (client, api) =>
        client.get(`/runs/${encodeURIComponent(id)}`, api.transcriptAnswer),
      )
      if (options.json) return printJson(run)
      await show(run)
    })

  common(
    runs.command('stop').description('stop what an agent is doing; its chat is told'),
    'runs stop family',
  )
    .argument('<run>', 'the id of the run, the beginning of it, or the folder of its group')
    .action(async (id: string, options: CommonOptions) => {
      const run = await withClient(options, (client, api) =>
        client.post(`/runs/${encodeURIComponent(id)}/stop`, undefined, api.runAnswer),
      )
      if (options.json) return printJson(run)
      await printLine(`Stopped: ${visible(run.group)}, run ${run.id}.`)
    })
}

/** What ran, and where: an image may bring an agent of its own. */
const agentOf = ({ driver, image, sandbox }: RunAnswer) =>
  image === null
    ? `${driver} in ${sandbox}`
    : `${driver === 'image' ? '' : `${driver} from `}${image} in ${sandbox}`

async function show(run: TranscriptAnswer): Promise<void> {
  const facts: [string, string][] = [
    ['id', run.id],
    ['group', run.group],
    ['kind', run.kind],
    ...(run.task_id === null ? [] : [['task', run.task_id] satisfies [string, string]]),
    ['agent', agentOf(run)],
    ['session', run.session_id ?? '-'],
    ['status', run.status],
    ['started', when(run.started_at)],
    ['ended', when(run.ended_at)],
    ['error', run.error ?? '-'],
  ]
  for (const [name, value] of facts) await printLine(`${name.padEnd(8)} ${visible(value)}`)
  for (const step of run.steps) {
    const name = step.name === null ? '' : ` ${visible(step.name)}`
    await printLine(`\n${when(step.at)}  ${visible(step.kind)}${name}`)
    await printLine(visibleLines(step.text))
  }
}
