import type { DeployAnswer } from '@hatchway/host/api'
import { command } from '../command.ts'
import { exitCodes, Failure } from '../failure.ts'
import { type CommonOptions, flag } from '../inputs.ts'
import { printJson, printLine } from '../output.ts'
import { poll } from '../poll.ts'
import { withProgress } from '../progress.ts'
import { url, withClient } from '../session.ts'
import { shortRevision } from './deploys.ts'

const pollMs = 1000
/** What a request fails with while one daemon ends and the next one starts. */
const duringRestart: ReadonlySet<string> = new Set(['DaemonGone', 'DataDirectoryHeld'])

export default command(
  'deploy',
  'restart a supervised daemon with the code that is checked out; if it does not start, go back',
  {
    example: '--wait',
    input: {
      rebuild: flag('build and restart even if this revision is already running'),
      wait: flag('wait for the result'),
    },
    async run({ rebuild = false, wait, ...options }) {
      const started = await withClient(options, (client, api) =>
        client.post('/deploys', { rebuild }, api.begunDeployAnswer),
      )
      const { id, from, to } = started
      if (!wait) {
        if (options.json) return printJson(started)
        return printLine(
          `Deploy ${id} from ${shortRevision(from)} to ${shortRevision(to)} has started. Its result: npx hatchway deploys`,
        )
      }
      const ended = await withProgress(`Deploy ${id} to ${shortRevision(to)}`, () => resultOf(id, options))
      if (options.json) await printJson(ended)
      if (ended?.status !== 'done') throw new Failure(ended?.error ?? 'The deploy failed.', exitCodes.refused)
      if (!options.json) await printLine(`${shortRevision(ended.to)} is running.`)
    },
  },
)

/** A new connection each time, and not often: while no daemon runs, each one holds the data directory for a moment. */
const resultOf = (id: number, options: CommonOptions): Promise<DeployAnswer | undefined> =>
  poll(
    async () => {
      try {
        const now = await withClient(options, (client, api) =>
          client.get(url`/deploys/${id}`, api.deployAnswer),
        )
        return now.ended_at === null ? undefined : now
      } catch (error) {
        if (error instanceof Error && duringRestart.has(error.name)) return undefined
        throw error
      }
    },
    { everyMs: pollMs },
  )
