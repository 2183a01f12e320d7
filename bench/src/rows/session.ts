import { setTimeout as sleep } from 'node:timers/promises'
import { startProgram } from '../children.ts'
import { absent, times } from '../format.ts'
import { type OpenedChat, openChatWith } from '../peers/chat.ts'
import { descendantsOf, proportionalMegabytes, residentMegabytes } from '../proc.ts'
import type { Line, Row, RowResult, Setting } from '../row.ts'
import { median } from '../statistics.ts'

const sandboxes = ['bubblewrap', 'process'] as const
type Sandbox = (typeof sandboxes)[number]

interface Footprint {
  processes: number
  /** as each process alone would be charged: what they share counts for each */
  residentMegabytes: number
  /** what they share, with each other and with the daemon, divided among those who do */
  proportionalMegabytes: number
}

const footprintOf = (pids: readonly number[]): Footprint => ({
  processes: pids.length,
  residentMegabytes: pids.reduce((sum, pid) => sum + residentMegabytes(pid), 0),
  proportionalMegabytes: pids.reduce((sum, pid) => sum + proportionalMegabytes(pid), 0),
})

/** One session after the other, each asked something that needs a tool, so that all of it has been started. */
const measure = async (opened: OpenedChat, rounds: number, settle: number): Promise<Footprint[]> => {
  const footprints: Footprint[] = []
  for (let round = 0; round < rounds; round++) {
    await opened.ask('remind me in 300 days to stretch')
    await sleep(settle)
    if ((await opened.hatchway.sessions()) !== 1) throw new Error('the session did not stay')
    footprints.push(footprintOf(descendantsOf(opened.hatchway.pid)))
    await opened.alone()
  }
  return footprints
}

const line = (sandbox: Sandbox, footprints: readonly Footprint[] | undefined, bare: number): Line => {
  const base = {
    what: `idle session, ${sandbox}`,
    against: `bare node -e ${bare.toFixed(0)} MB`,
    target: absent,
  }
  if (footprints === undefined) return { ...base, hatchway: absent, ratio: absent }
  const resident = median(footprints.map(footprint => footprint.residentMegabytes))
  const processes = median(footprints.map(footprint => footprint.processes))
  const hatchway = `${resident.toFixed(0)} MB in ${processes} processes`
  return { ...base, hatchway, ratio: times(resident / bare) }
}

/** A Node that waits for something: what each process of an agent takes at the least. */
const bareNode = async (settle: number): Promise<number> => {
  const waits = ['-e', 'setInterval(() => {}, 1e9)']
  const node = await startProgram(process.execPath, waits, async () => true)
  if (node === undefined) throw new Error('node does not start')
  await sleep(settle)
  const megabytes = residentMegabytes(node.pid)
  await node.end()
  return megabytes
}

const run = async ({ directory, quick, say }: Setting): Promise<RowResult> => {
  const settle = quick ? 2000 : 10_000
  const rounds = quick ? 1 : 3
  const missing: string[] = []
  const measured = new Map<Sandbox, Footprint[]>()
  const bare = await bareNode(settle)
  for (const sandbox of sandboxes) {
    // Long enough to be looked at, and then it ends by itself.
    const opened = await openChatWith(directory, `session ${sandbox}`, { sandbox, idleMs: settle + 1500 })
    if ('missing' in opened) {
      missing.push(opened.missing)
      continue
    }
    const footprints = await measure(opened, rounds, settle)
    measured.set(sandbox, footprints)
    await opened.end()
    say(`${sandbox}: ${footprints.map(one => `${one.residentMegabytes.toFixed(0)} MB`).join(', ')}`)
  }
  return {
    lines: sandboxes.map(sandbox => line(sandbox, measured.get(sandbox), bare)),
    figures: { bareNodeMegabytes: bare, ...Object.fromEntries(measured) },
    missing,
  }
}

export const session: Row = { name: 'session', title: 'memory of an idle session', run }
