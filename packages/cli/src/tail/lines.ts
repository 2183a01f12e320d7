import type { Client, CommandAnswer } from '@hatchway/host/api'
import { clock, milliseconds } from '../format.ts'
import { note, printJsonLine, printLine } from '../output.ts'
import { type Api, url, withClient } from '../session.ts'
import { visible } from '../text.ts'
import { okOf, type TailOptions } from './options.ts'
import { decisionOf } from './row.ts'

const usualLines = 20

/** One line or one JSON object for each command: the past ones, then each one as it is handled. */
export const printLines = (given: TailOptions): Promise<void> =>
  withClient(given, async (client, api) => {
    if (client.daemon) return follow(client, api, given)
    await printPast(client, api, given)
    note('no daemon is running, so no more commands will come. Start one with: npx hatchway up')
  })

const print = (command: CommandAnswer, { json }: TailOptions) =>
  json ? printJsonLine(command) : printLine(lineOf(command))

/** Returns the numbers of the printed commands. */
async function printPast(client: Client, api: Api, given: TailOptions): Promise<ReadonlySet<number>> {
  const { group, type, decision, lines: limit = usualLines } = given
  const path = url`/commands?${{ limit, group, type, ok: okOf(decision) }}`
  const commands = await client.get(path, api.commandsAnswer)
  for (const command of commands) await print(command, given)
  return new Set(commands.map(({ seq }) => seq))
}

async function follow(client: Client, api: Api, given: TailOptions): Promise<void> {
  const { group, type, decision } = given
  const end = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => end.abort())
  let printed: ReadonlySet<number> | undefined
  const isWanted = (command: CommandAnswer) =>
    !printed?.has(command.seq) &&
    (type === undefined || command.type === type) &&
    (decision === undefined || decisionOf(command) === decision)
  await client.events(
    url`/events?${{ group }}`,
    async event => {
      // From the first event on nothing is missed, so the past is read now; what is in both is printed once.
      printed ??= await printPast(client, api, given)
      if (event.kind === 'dropped') note(`${event.count} commands are not shown: this terminal was too slow.`)
      if (event.kind === 'command' && isWanted(event.command)) await print(event.command, given)
    },
    end.signal,
  )
  if (!end.signal.aborted) note('the daemon has ended.')
}

function lineOf(command: CommandAnswer): string {
  const { outcome } = command
  const decision = !outcome ? 'answer follows' : outcome.ok ? 'ok' : `refused ${outcome.error.code}`
  const parts = [
    clock(command.received_at),
    visible(command.group).padEnd(16),
    visible(command.type ?? '?').padEnd(18),
    (command.repeated ? `${decision}, repeated` : decision).padEnd(22),
    milliseconds(command.took_us).padStart(9),
  ]
  if (outcome?.ok === false) parts.push(visible(outcome.error.message))
  return parts.join('  ').trimEnd()
}
