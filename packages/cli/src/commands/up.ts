import { flushCompileCache } from 'node:module'
import type { Command } from 'commander'
import { endAsked } from '../end-asked.ts'
import { complain, exitCodes, Failure } from '../failure.ts'
import { type CommonOptions, common } from '../options.ts'
import { sayInPassing } from '../output.ts'
import { configOf } from '../session.ts'
import { safeJson, visible } from '../text.ts'

interface UpOptions extends CommonOptions {
  createMain?: boolean
}

/** for a daemon that is to start again */
const restartMs = 30_000

type Daemon = Awaited<ReturnType<typeof import('@hatchway/host')['startDaemon']>>

const mainGroup = {
  folder: 'main',
  jid: 'local:main',
  name: 'Main',
  main: true,
  dialect: 'hatchway',
} as const

export function addUp(program: Command): void {
  common(
    program.command('up').description('run the daemon in the foreground, until Ctrl-C or SIGTERM'),
    'up --data /srv/hatchway',
  )
    .option('--create-main', 'where there is no main group yet, add one: main, for the chat local:main')
    .action(run)
}

async function run(options: UpOptions): Promise<void> {
  try {
    process.exitCode = await serve(options)
  } catch (error) {
    complain(error)
  }
  // Whatever a daemon that failed half-way still holds open must not keep it half alive.
  process.exit()
}

/** Resolves with the exit code. */
async function serve(options: UpOptions): Promise<number> {
  const asked = Promise.withResolvers<number>()
  endAsked(() => asked.resolve(exitCodes.done))
  const [{ startDaemon, takeSupervisor, whenSupervisorEnds }, config] = await Promise.all([
    import('@hatchway/host'),
    configOf(options),
  ])
  // Node keeps all that it has compiled until it is written down: some megabytes, of no more use to a daemon.
  flushCompileCache()
  const supervisor = takeSupervisor(process.env)
  if (supervisor && !process.channel) whenSupervisorEnds(supervisor, () => asked.resolve(exitCodes.done))
  const restart = (code: number) => {
    asked.resolve(code)
    // Whatever is not finished is safe on disk, and the next process must not wait for what hangs.
    setTimeout(() => process.exit(code), restartMs).unref()
  }
  // Asked to end while it still works off what was waiting: whatever is not finished is safe on disk.
  const daemon = await Promise.race([
    startDaemon(config, supervisor && { supervisor, restart }),
    asked.promise.then(() => undefined),
  ])
  if (daemon === undefined) return asked.promise

  if (options.createMain && !daemon.host.store.groups().some(group => group.main)) {
    const outcome = await daemon.host.addGroup(mainGroup)
    if (!outcome.ok) throw new Failure(`The main group cannot be added: ${outcome.error.message}`)
  }
  announce(daemon, options)
  if (!options.json) void announceAgents(daemon)
  const code = await asked.promise
  await daemon.stop()
  if (!options.json) sayInPassing('hatchway has stopped.')
  return code
}

function announce({ host }: Daemon, options: UpOptions): void {
  const groups = host.store.groups()
  const modes = new Map<string, number>()
  for (const { folder } of groups) {
    const mode = host.mode(folder) ?? 'starting'
    modes.set(mode, (modes.get(mode) ?? 0) + 1)
  }
  const { data, durability } = host.config
  if (options.json) {
    sayInPassing(
      safeJson({
        ready: true,
        pid: process.pid,
        data,
        durability,
        groups: groups.length,
        modes: Object.fromEntries(modes),
      }),
    )
    return
  }
  const watched = [...modes].map(([mode, count]) => `${count} by ${mode}`).join(', ')
  const counted = groups.length === 1 ? '1 group' : `${groups.length} groups`
  sayInPassing(
    `hatchway is ready on ${visible(data)}: ${counted}${watched === '' ? '' : ` (${watched})`}, durability ${durability}.`,
  )
  sayInPassing('Stop it with Ctrl-C or SIGTERM.')
  const directory = shellWord(data)
  const first = groups.find(group => group.main) ?? groups[0]
  if (!first) {
    sayInPassing('There is no group yet. In another terminal, add one:')
    sayInPassing(
      `  npx hatchway groups add --data ${directory} --folder main --jid local:main --name Main --main`,
    )
    return
  }
  sayInPassing('Try it in another terminal:')
  sayInPassing(
    `  npx hatchway post --data ${directory} --group ${first.folder} --type send_message --payload '{"text":"hello"}' --wait`,
  )
  sayInPassing(`  npx hatchway tail --data ${directory}`)
}

/** Looking for sandboxes takes a moment; files are handled meanwhile. */
async function announceAgents({ agentsReady, web }: Daemon): Promise<void> {
  const agents = await agentsReady
  if (agents) sayInPassing(`Agents run in ${visible(agents.reason)}`)
  if (agents?.warning !== undefined) sayInPassing(`WARNING: ${visible(agents.warning)}`)
  if (web?.link !== undefined) sayInPassing(`Chat with your assistant: ${web.link}`)
}

const shellWord = (text: string) =>
  /^[A-Za-z0-9_/.,:@%+=-]+$/.test(text) ? text : `'${visible(text).replaceAll("'", `'\\''`)}'`
