import type { CommandAnswer } from '@hatchway/host/api'
import type { Command } from 'commander'
import { type CommonOptions, common, positive } from '../options.ts'
import { printJsonLine, printLine } from '../output.ts'
import { withClient } from '../session.ts'
import { visible } from '../text.ts'

interface TailOptions extends CommonOptions {
  group?: string
  lines: number
}

export function addTail(program: Command): void {
  common(
    program.command('tail').description('commands as they are handled: who, what, decision, time taken'),
    'tail --group family',
  )
    .option('--group <folder>', 'only this group’s')
    .option('-n, --lines <number>', 'how many of the past to begin with', positive, 20)
    .action((options: TailOptions) => withClient(options, (client, api) => tail(options, client, api)))
}

async function tail(
  { group, lines, json }: TailOptions,
  client: Parameters<Parameters<typeof withClient>[1]>[0],
  api: typeof import('@hatchway/host/api'),
): Promise<void> {
  const print = (command: CommandAnswer) => (json ? printJsonLine(command) : printLine(lineOf(command)))
  const note = (text: string) => process.stderr.write(`hatchway: ${text}\n`)
  const past = async () => {
    const query = new URLSearchParams({ limit: String(lines), ...(group !== undefined && { group }) })
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
    `/events?${new URLSearchParams(group === undefined ? {} : { group })}`,
    async event => {
      // The first event says that nothing is missed from now on; what is both past and to come is shown once.
      shown ??= await past()
      if (event.kind === 'dropped') note(`${event.count} commands are not shown: this terminal was too slow.`)
      if (event.kind === 'command' && !shown.has(event.command.seq)) await print(event.command)
    },
    enough.signal,
  )
  if (!enough.signal.aborted) note('the daemon has ended.')
}

function lineOf(command: CommandAnswer): string {
  const { outcome } = command
  const time = new Date(command.received_at)
  const two = (value: number) => String(value).padStart(2, '0')
  const clock = `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}.${String(time.getMilliseconds()).padStart(3, '0')}`
  const decision = !outcome ? 'answer follows' : outcome.ok ? 'ok' : `refused ${outcome.error.code}`
  const parts = [
    clock,
    visible(command.group).padEnd(16),
    visible(command.type ?? '?').padEnd(18),
    (command.repeated ? `${decision}, repeated` : decision).padEnd(22),
    `${(command.took_us / 1000).toFixed(1)} ms`.padStart(9),
  ]
  if (outcome?.ok === false) parts.push(visible(outcome.error.message))
  return parts.join('  ').trimEnd()
}
