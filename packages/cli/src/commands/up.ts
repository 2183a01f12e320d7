import { existsSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { command } from '../command.ts'
import { onEndRequested } from '../end-requested.ts'
import { exitCodes, Failure, runToExit } from '../failure.ts'
import { plural } from '../format.ts'
import { type CommonOptions, flag } from '../inputs.ts'
import { announce } from '../output.ts'
import { loadSettings } from '../session.ts'
import { safeJson, visible } from '../text.ts'

export const createMain = flag(
  'add a main group if there is none, as in a new data directory: folder main, chat local:main',
)

interface UpOptions extends CommonOptions {
  createMain: boolean | undefined
}

/** How long a daemon may take to stop before its restart. */
const restartMs = 30_000

type Daemon = Awaited<ReturnType<typeof import('@hatchway/host')['startDaemon']>>

const mainGroup = {
  folder: 'main',
  jid: 'local:main',
  name: 'Main',
  main: true,
  dialect: 'hatchway',
} as const

export default command('up', 'run the daemon in the foreground, until Ctrl-C or SIGTERM', {
  example: '--data /srv/hatchway',
  input: { createMain },
  run: options => runToExit(() => serve(options)),
})

/** Resolves with the exit code. */
async function serve(options: UpOptions): Promise<number> {
  const ending = Promise.withResolvers<number>()
  onEndRequested(() => ending.resolve(exitCodes.done))
  const [{ layoutOf, startDaemon, takeSupervisor, whenSupervisorEnds }, config] = await Promise.all([
    import('@hatchway/host'),
    loadSettings(options),
  ])
  const isNew = !existsSync(layoutOf(config.data).database)
  // Node keeps compiled code in memory until it is written to the cache: megabytes that a daemon no longer needs.
  flushCompileCache()
  const supervisor = takeSupervisor(process.env)
  if (supervisor && !process.channel) whenSupervisorEnds(supervisor, () => ending.resolve(exitCodes.done))
  const restart = (code: number) => {
    ending.resolve(code)
    // Unfinished work is safe on disk, and the next process must not wait for something that hangs.
    setTimeout(() => process.exit(code), restartMs).unref()
  }
  // An end may be requested while it starts; unfinished work is safe on disk.
  const daemon = await Promise.race([
    startDaemon(config, supervisor && { supervisor, restart }),
    ending.promise.then(() => undefined),
  ])
  if (daemon === undefined) return ending.promise

  if ((options.createMain || isNew) && !daemon.host.store.groups().some(group => group.main)) {
    const outcome = await daemon.host.addGroup(mainGroup)
    if (!outcome.ok) throw new Failure(`The main group cannot be added: ${outcome.error.message}`)
  }
  if (options.json) announceJson(daemon)
  else {
    announceReady(daemon)
    void announceAgents(daemon)
  }
  const code = await ending.promise
  await daemon.stop()
  if (!options.json) announce('hatchway has stopped.')
  return code
}

/** How many groups are watched in which way. */
function watchModes({ host }: Daemon): Map<string, number> {
  const modes = new Map<string, number>()
  for (const { folder } of host.store.groups()) {
    const mode = host.mode(folder) ?? 'starting'
    modes.set(mode, (modes.get(mode) ?? 0) + 1)
  }
  return modes
}

function announceJson(daemon: Daemon): void {
  const { data, durability } = daemon.host.config
  const groups = daemon.host.store.groups().length
  const modes = Object.fromEntries(watchModes(daemon))
  announce(safeJson({ ready: true, pid: process.pid, data, durability, groups, modes }))
}

function announceReady(daemon: Daemon): void {
  const { data, durability } = daemon.host.config
  const groups = daemon.host.store.groups()
  const modes = [...watchModes(daemon)].map(([mode, count]) => `${count} by ${mode}`).join(', ')
  const watched = modes === '' ? '' : ` (watched: ${modes})`
  announce(
    `hatchway is ready on ${visible(data)}: ${plural(groups.length, 'group')}${watched}, durability ${durability}.`,
  )
  announce('Stop it with Ctrl-C or SIGTERM.')
  const directory = shellWord(data)
  const first = groups.find(group => group.main) ?? groups[0]
  if (!first) {
    announce('There is no group yet. Add one in another terminal:')
    announce(
      `  npx hatchway groups add --data ${directory} --folder main --jid local:main --name Main --main`,
    )
    return
  }
  announce('Try it in another terminal:')
  announce(
    `  npx hatchway post --data ${directory} --group ${first.folder} --type send_message --payload '{"text":"hello"}' --wait`,
  )
  announce(`  npx hatchway tail --data ${directory}`)
}

/** Finding the sandbox takes a moment; files are handled in the meantime. */
async function announceAgents({ agentsReady, web }: Daemon): Promise<void> {
  const agents = await agentsReady
  if (agents) announce(`Agents run in ${visible(agents.reason)}`)
  if (agents?.warning !== undefined) announce(`WARNING: ${visible(agents.warning)}`)
  if (web?.link !== undefined) announce(`Chat with your assistant: ${web.link}`)
}

const shellWord = (text: string) =>
  /^[A-Za-z0-9_/.,:@%+=-]+$/.test(text) ? text : `'${visible(text).replaceAll("'", `'\\''`)}'`
