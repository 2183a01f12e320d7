import type { CommandAnswer } from '@hatchway/host/api'
import type { TailOptions } from '../commands/tail.ts'
import { okOf } from '../decision.ts'
import { printJsonLine, printLine } from '../output.ts'
import { queryOf } from '../query.ts'
import { withClient } from '../session.ts'
import { visible } from '../text.ts'
import { clock, decisionOf, tookOf } from './row.ts'

const usualLines = 20

/** One line for each command, or one object, for pipes and for those who scroll. */
export const printAll = ({
  group,
  type,
  decision,
  lines = usualLines,
  json,
  ...options
}: TailOptions): Promise<void> =>
  withClient(options, async (client, api) => {
    const isWanted = (command: CommandAnswer) =>
      (type === undefined || command.type === type) &&
      (decision === undefined || decisionOf(command) === decision)
    const print = (command: CommandAnswer) => (json ? printJsonLine(command) : printLine(lineOf(command)))
    const note = (text: string) => process.stderr.write(`hatchway: ${text}\n`)
    const past = async () => {
      const query = queryOf({ limit: lines, group, type, ok: okOf(decision) })
      const commands = await client.get(`/commands?${query}`, api.commandsAnswer)
      for (const command of commands) await print(command)
      return new Set(commands.map(command => command.seq))
    }
    if (!client.daemon) {
      await past()
      note('no daemon is running, so there is nothing more to come. Start one with: npx hatchway up')
      return
    }

    const enough = new AbortController()
    const stop = () => enough.abort()
    process.once('SIGINT', stop)
    process.once('SIGTERM', stop)
    let shown: Set<number> | undefined
    await client.events(
      `/events?${queryOf({ group })}`,
      async event => {
        // The first event says that nothing is missed from now on; what is both past and to come is shown once.
        shown ??= await past()
        if (event.kind === 'dropped')
          note(`${event.count} commands are not shown: this terminal was too slow.`)
        if (event.kind === 'command' && !shown.has(event.command.seq) && isWanted(event.command))
          await print(event.command)
      },
      enough.signal,
    )
    if (!enough.signal.aborted) note('the daemon has ended.')
  })

function lineOf(command: CommandAnswer): string {
  const { outcome } = command
  const decision = !outcome ? 'answer follows' : outcome.ok ? 'ok' : `refused ${outcome.error.code}`
  const parts = [
    clock(command.received_at),
    visible(command.group).padEnd(16),
    visible(command.type ?? '?').padEnd(18),
    (command.repeated ? `${decision}, repeated` : decision).padEnd(22),
    tookOf(command.took_us).padStart(9),
  ]
  if (outcome?.ok === false) parts.push(visible(outcome.error.message))
  return parts.join('  ').trimEnd()
}
