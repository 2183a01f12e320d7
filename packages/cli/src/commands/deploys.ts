import { setTimeout as sleep } from 'node:timers/promises'
import type { DeployAnswer } from '@hatchway/host/api'
import type { Command } from 'commander'
import { exitCodes, Failure } from '../failure.ts'
import { briefTime, once, printList, when } from '../list.ts'
import { type CommonOptions, common, positive } from '../options.ts'
import { printJson, printLine } from '../output.ts'
import { withProgress } from '../progress.ts'
import { withClient } from '../session.ts'
import type { Column } from '../table.ts'

const short = (revision: string) => revision.slice(0, 12)

const columns: Column<DeployAnswer>[] = [
  { title: 'ID', value: deploy => String(deploy.id), right: true },
  { title: 'BEGAN', value: deploy => when(deploy.created_at), brief: briefTime },
  { title: 'BY', value: deploy => deploy.group ?? 'operator', flexible: true },
  { title: 'FROM', value: deploy => short(deploy.from) },
  { title: 'TO', value: deploy => short(deploy.to) },
  { title: 'STATUS', value: deploy => deploy.status },
  { title: 'REASON', value: deploy => deploy.error ?? '-', flexible: true },
]

const lookMs = 1000
/** of what a command fails with while one daemon ends and another starts */
const isBetweenTwo: ReadonlySet<string> = new Set(['DaemonGone', 'DataDirectoryHeld'])

interface DeployOptions extends CommonOptions {
  rebuild?: boolean
  wait?: boolean
}

export function addDeploys(program: Command): void {
  common(
    program
      .command('deploy')
      .description(
        'restart a supervised daemon with the code that is checked out; back again if it does not come up',
      ),
    'deploy --wait',
  )
    .option('--rebuild', 'build and restart, even if the revision is the one that runs')
    .option('--wait', 'until it is known what became of it')
    .action(deploy)

  common(
    program.command('deploys').description('restarts with other code, oldest first'),
    'deploys --limit 5',
  )
    .option('--limit <number>', 'the newest so many', positive, 20)
    .action((options: CommonOptions & { limit: number }) =>
      withClient(options, (client, api) =>
        printList(
          options,
          once(client.get(`/deploys?limit=${options.limit}`, api.deploysAnswer)),
          columns,
          'Nothing was deployed yet.',
        ),
      ),
    )
}

async function deploy(options: DeployOptions): Promise<void> {
  const begun = await withClient(options, (client, api) =>
    client.post('/deploys', { rebuild: options.rebuild === true }, api.begunDeployAnswer),
  )
  if (!options.wait) {
    if (options.json) return printJson(begun)
    return printLine(
      `Deploy ${begun.id} from ${short(begun.from)} to ${short(begun.to)} is under way; hatchway deploys shows how it ends.`,
    )
  }
  const ended = await withProgress(`Deploy ${begun.id} to ${short(begun.to)}`, () => endOf(begun.id, options))
  if (options.json) await printJson(ended)
  if (ended.status !== 'done') {
    throw new Failure(ended.error ?? 'It failed.', exitCodes.refused)
  }
  if (!options.json) await printLine(`${short(ended.to)} runs.`)
}

/** A new connection for each look, and not many of them: while none runs, each holds the data directory for a moment. */
async function endOf(id: number, options: CommonOptions): Promise<DeployAnswer> {
  for (;;) {
    try {
      const now = await withClient(options, (client, api) => client.get(`/deploys/${id}`, api.deployAnswer))
      if (now.ended_at !== null) return now
    } catch (error) {
      if (!(error instanceof Error && isBetweenTwo.has(error.name))) throw error
    }
    await sleep(lookMs)
  }
}
