import type { CommandAnswer } from '@hatchway/host/api'
import type { TailOptions } from '../commands/tail.ts'
import { endAsked } from '../end-asked.ts'
import { configOf, withClient } from '../session.ts'
import { painter } from './cells.ts'
import type { HostState } from './header.ts'
import { createKept } from './kept.ts'
import { createKeys } from './keys.ts'
import { rowOf } from './row.ts'
import { createScreen } from './screen.ts'
import { createView } from './view.ts'
import { watch } from './watch.ts'

const keptCommands = 10_000
const usualLines = 1000
const frameMs = 100
const secondsOfRate = 5

/** Commands as they are handled, on the whole screen. */
export async function showAll({
  group,
  type,
  decision,
  lines = usualLines,
  ...options
}: TailOptions): Promise<void> {
  const [api, config] = await Promise.all([import('@hatchway/host/api'), configOf(options)])
  const kept = createKept(keptCommands)
  const limit = Math.min(lines, keptCommands)
  const take = (command: CommandAnswer) => kept.add(rowOf(command))
  const startedAt = Date.now()
  const host: HostState = {
    data: config.data,
    connection: 'looking',
    since: startedAt,
    heardAt: startedAt,
    seconds: [],
    overview: null,
  }
  // Before the screen is ours, so that what cannot work says so in the ordinary way.
  await withClient(options, async client => {
    for (const command of await client.get(`/commands?limit=${limit}`, api.commandsAnswer)) take(command)
    if (!client.daemon) host.connection = 'gone'
  })

  const enough = new AbortController()
  const screen = createScreen(process.stdin, process.stdout)
  const view = createView({
    kept,
    host,
    paint: painter((process.env.NO_COLOR ?? '') === ''),
    filter: {
      ...(group !== undefined && { group: `=${group}` }),
      ...(type !== undefined && { type: `=${type}` }),
      ...(decision !== undefined && { decision }),
    },
    open: seq => void ask(seq),
  })

  let frame: NodeJS.Timeout | undefined
  let drawnAt = 0
  const draw = () => {
    frame = undefined
    drawnAt = performance.now()
    const { columns = 80, rows = 24 } = process.stdout
    screen.draw(view.frame({ columns: columns || 80, rows: rows || 24 }, Date.now()))
  }
  const change = () => {
    if (enough.signal.aborted) return
    frame ??= setTimeout(draw, Math.max(0, drawnAt + frameMs - performance.now()))
  }

  const watching = watch({
    api,
    connect: () => api.connect(config, { daemonOnly: true }),
    past: () => {
      // Those that were open may have been answered since.
      const after = (kept.oldestOpen() ?? kept.last() + 1) - 1
      return new URLSearchParams({ limit: String(keptCommands), after: String(after) })
    },
    onLive() {
      if (host.connection === 'gone') view.say('The daemon is back.', Date.now())
      Object.assign(host, { connection: 'live', since: Date.now(), heardAt: Date.now(), seconds: [] })
      change()
    },
    onGone() {
      if (host.connection === 'live') {
        view.say('The daemon has ended. This goes on when it is back.', Date.now())
        host.since = Date.now()
      }
      host.connection = 'gone'
      change()
    },
    onCommand(command) {
      take(command)
      if (command.seq === view.opened()) void ask(command.seq)
      change()
    },
    onTraffic({ handled }) {
      host.heardAt = Date.now()
      host.seconds = [...host.seconds, handled].slice(-secondsOfRate)
      change()
    },
    onOverview(overview) {
      host.overview = overview
      change()
    },
    signal: enough.signal,
  })

  async function ask(seq: number): Promise<void> {
    try {
      view.tell(seq, await watching.whole(seq))
    } catch (error) {
      if (!(error instanceof Error)) throw error
      const isGone = error instanceof api.DaemonGone
      view.tell(seq, {
        failure: isGone ? 'No daemon runs: this is all that is known here.' : error.message,
      })
    }
    change()
  }

  const quit = () => enough.abort()
  const suspend = () => {
    screen.close()
    // All of us, because npm and a shell may stand between the person's shell and us.
    process.kill(0, 'SIGTSTP')
    // Where nobody could wake us, we are not stopped; otherwise this comes when we are woken.
    setTimeout(resume, frameMs)
  }
  const resume = () => {
    if (enough.signal.aborted) return
    screen.open()
    change()
  }
  const resized = () => {
    screen.forget()
    change()
  }
  const keys = createKeys(key => {
    if (key === 'ctrl-l') resized()
    const wish = view.press(key)
    if (wish === 'quit') quit()
    else if (wish === 'suspend') suspend()
    else change()
  })

  endAsked(quit)
  process.stdin.setEncoding('utf8')
  process.stdin.on('data', (text: string) => keys.take(text))
  process.stdin.once('end', quit)
  process.stdin.once('error', quit)
  process.stdout.on('resize', resized)
  const clock = setInterval(change, 1000)
  try {
    screen.open()
    draw()
    await watching.ended
  } finally {
    enough.abort()
    keys.end()
    clearInterval(clock)
    clearTimeout(frame)
    process.stdout.off('resize', resized)
    screen.close()
  }
}
