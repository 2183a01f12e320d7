import { onEndRequested } from '../end-requested.ts'
import { type Api, findPlace, url, withClient } from '../session.ts'
import { painter } from './cells.ts'
import type { HostState } from './header.ts'
import { createKeys } from './keys.ts'
import type { TailOptions } from './options.ts'
import { rowOf } from './row.ts'
import { createRowBuffer, type RowBuffer } from './row-buffer.ts'
import { createScreen, type Screen } from './screen.ts'
import { createView, type View } from './view.ts'
import { type Watch, watch } from './watch.ts'

const keptCommands = 10_000
const usualLines = 1000
const frameMs = 100
const clockMs = 1000
const secondsOfRate = 5

/** Commands as they are handled, on the whole screen. */
export async function showFullScreen({ group, type, decision, lines = usualLines, ...options }: TailOptions) {
  const [api, place] = await Promise.all([import('@hatchway/host/api'), findPlace(options)])
  const rows = createRowBuffer(keptCommands)
  const now = Date.now()
  const host: HostState = {
    data: place.data,
    connection: 'connecting',
    since: now,
    heardAt: now,
    seconds: [],
    overview: null,
  }
  // Before the screen changes, so that a failure is printed as usual.
  await withClient(options, async client => {
    const path = url`/commands?${{ limit: Math.min(lines, keptCommands) }}`
    for (const command of await client.get(path, api.commandsAnswer)) rows.add(rowOf(command))
    if (!client.daemon) host.connection = 'gone'
  })

  const end = new AbortController()
  const screen = createScreen(process.stdin, process.stdout)
  const view = createView({
    rows,
    host,
    paint: painter((process.env.NO_COLOR ?? '') === ''),
    filter: {
      ...(group !== undefined && { group: `=${group}` }),
      ...(type !== undefined && { type: `=${type}` }),
      ...(decision !== undefined && { decision }),
    },
    open: seq => void showDetails(seq, { api, view, watching, redraw: frames.request }),
  })
  const frames = createFrames(screen, view, end.signal)
  const watching = watch({
    api,
    connect: () => api.connect(place, { daemonOnly: true }),
    signal: end.signal,
    ...createReceiver(host, rows, view, frames.request, seq =>
      showDetails(seq, { api, view, watching, redraw: frames.request }),
    ),
  })
  await runTerminal({ screen, view, frames, end, ended: watching.ended })
}

/** Puts what the daemon sends into the view. */
function createReceiver(
  host: HostState,
  rows: RowBuffer,
  view: View,
  redraw: () => void,
  readDetails: (seq: number) => Promise<void>,
): Omit<Parameters<typeof watch>[0], 'api' | 'connect' | 'signal'> {
  return {
    missed: () => ({
      // Open commands may have been answered in the meantime.
      after: (rows.oldestOpen() ?? rows.last() + 1) - 1,
      limit: keptCommands,
    }),
    onLive() {
      const now = Date.now()
      if (host.connection === 'gone') view.notify('The daemon is running again.', now)
      Object.assign(host, { connection: 'live', since: now, heardAt: now, seconds: [] })
      redraw()
    },
    onGone() {
      if (host.connection === 'live') {
        host.since = Date.now()
        view.notify('The daemon has ended. Reconnecting…', host.since)
      }
      host.connection = 'gone'
      redraw()
    },
    onCommand(command) {
      rows.add(rowOf(command))
      if (command.seq === view.opened()) void readDetails(command.seq)
      redraw()
    },
    onTraffic({ handled }) {
      host.heardAt = Date.now()
      host.seconds = [...host.seconds, handled].slice(-secondsOfRate)
      redraw()
    },
    onOverview(overview) {
      host.overview = overview
      redraw()
    },
  }
}

async function showDetails(
  seq: number,
  { api, view, watching, redraw }: { api: Api; view: View; watching: Watch; redraw(): void },
): Promise<void> {
  try {
    view.setDetails(seq, await watching.whole(seq))
  } catch (error) {
    if (!(error instanceof Error)) throw error
    const isGone = error instanceof api.DaemonGone
    view.setDetails(seq, {
      failure: isGone ? 'No daemon is running, so there are no more details.' : error.message,
    })
  }
  redraw()
}

interface Frames {
  /** draws soon; many requests become one frame */
  request(): void
  stop(): void
}

function createFrames(screen: Screen, view: View, signal: AbortSignal): Frames {
  let timer: NodeJS.Timeout | undefined
  let drawnAt = Number.NEGATIVE_INFINITY
  const draw = () => {
    timer = undefined
    drawnAt = performance.now()
    const { columns, rows } = process.stdout
    screen.draw(view.frame({ columns: columns || 80, rows: rows || 24 }, Date.now()))
  }
  return {
    request() {
      if (!signal.aborted) timer ??= setTimeout(draw, Math.max(0, drawnAt + frameMs - performance.now()))
    },
    stop: () => clearTimeout(timer),
  }
}

/** Keys in, frames out, until the end. */
async function runTerminal(parts: {
  screen: Screen
  view: View
  frames: Frames
  end: AbortController
  ended: Promise<void>
}): Promise<void> {
  const { screen, view, frames, end, ended } = parts
  const quit = () => end.abort()
  const resume = () => {
    if (end.signal.aborted) return
    screen.open()
    frames.request()
  }
  const suspend = () => {
    screen.close()
    // The whole process group, because npm and a shell may stand between the person's shell and us.
    process.kill(0, 'SIGTSTP')
    // This runs when we are continued, or at once where nobody could continue us and we are not stopped.
    setTimeout(resume, frameMs)
  }
  const redrawAll = () => {
    screen.clear()
    frames.request()
  }
  const keys = createKeys(key => {
    if (key === 'ctrl-l') redrawAll()
    const wish = view.press(key)
    if (wish === 'quit') quit()
    else if (wish === 'suspend') suspend()
    else frames.request()
  })

  onEndRequested(quit)
  process.stdin.setEncoding('utf8')
  process.stdin.on('data', (text: string) => keys.take(text))
  process.stdin.once('end', quit)
  process.stdin.once('error', quit)
  process.stdout.on('resize', redrawAll)
  const clock = setInterval(frames.request, clockMs)
  try {
    resume()
    await ended
  } finally {
    end.abort()
    keys.end()
    clearInterval(clock)
    frames.stop()
    process.stdout.off('resize', redrawAll)
    screen.close()
  }
}
