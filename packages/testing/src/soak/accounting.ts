import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { errorCode } from '@hatchway/spool'
import { z } from 'zod'
import { announcedSocket } from '../../../host/src/api/socket.ts'
import { layoutOf, possibleDrops } from '../../../host/src/base/layout.ts'
import { overSocket } from '../../../host/src/client/over-socket.ts'
import type { Finding } from '../report.ts'
import { idleMs } from './plan.ts'
import { childrenOf, metricsOf } from './sampling.ts'
import type { Heard, Sent } from './traffic.ts'

type Hatchway = (...args: string[]) => Promise<string>
const total = (counts: Readonly<Record<string, number>>) =>
  Object.values(counts).reduce((sum, each) => sum + each, 0)

/** `none` of these is what has to be; some of them are shown. */
const none = (what: string, found: readonly string[], bound = 'none'): Finding => ({
  what,
  seen: found.length === 0 ? 'none' : `${found.length}: ${found.slice(0, 3).join('; ')}`,
  bound,
  ok: found.length === 0,
})
const equal = (what: string, seen: number, wanted: number, of: string): Finding => ({
  what,
  seen: String(seen),
  bound: `${wanted}, ${of}`,
  ok: seen === wanted,
})

const entry = z.object({ source_group: z.string(), count: z.number() })

/** Refused files by group, those that are only counted included. */
function refusedIn(errors: string): Map<string, number> {
  const found = new Map<string, number>()
  for (const name of readdirSync(errors)) {
    if (!name.endsWith('.error.json')) continue
    const { source_group: group, count } = entry.parse(JSON.parse(readFileSync(join(errors, name), 'utf8')))
    found.set(group, (found.get(group) ?? 0) + count)
  }
  return found
}

function refusals(errors: string, sent: readonly Sent[]): string[] {
  const wanted = new Map(sent.flatMap(({ refused }) => Object.entries(refused)))
  const found = refusedIn(errors)
  return [...new Set([...wanted.keys(), ...found.keys()])].flatMap(group => {
    const [has, should] = [found.get(group) ?? 0, wanted.get(group) ?? 0]
    return has === should ? [] : [`${group} has ${has}, not ${should}`]
  })
}

const doctorFindings = z.array(z.object({ what: z.string(), state: z.string(), says: z.string() }))
/** Refused files are counted otherwise, and messages come and go. */
const expectedOfDoctor = new Set(['errors'])

/** What the doctor finds wrong, with its numbers taken out. */
export async function doctorOf(hatchway: Hatchway): Promise<string[]> {
  let text: string
  try {
    text = await hatchway('doctor', '--json')
  } catch (error) {
    // Something bad makes the exit code 1, and is printed all the same.
    const { stdout, stderr } = z.object({ stdout: z.string(), stderr: z.string() }).parse(error)
    if (stdout === '') return [`the doctor failed: ${stderr.trim()}`]
    text = stdout
  }
  return doctorFindings
    .parse(JSON.parse(text))
    .filter(({ what, state }) => state !== 'good' && !expectedOfDoctor.has(what))
    .map(({ what, says }) => `${what}: ${says.replace(/\d+/g, 'N')}`)
}

export interface Accounted {
  data: string
  pid: number
  rig: string
  sent: readonly Sent[]
  heard: Heard
  hatchway: Hatchway
  doctorBefore: readonly string[]
}

/** Everything that was sent, and what has become of it, while the daemon is still up. */
export async function account({
  data,
  pid,
  rig,
  sent,
  heard,
  hatchway,
  doctorBefore,
}: Accounted): Promise<Finding[]> {
  const layout = layoutOf(data)
  const sum = (of: (each: Sent) => number) => sent.reduce((all, each) => all + of(each), 0)
  await calm(pid, data)
  // The summaries of what was refused and not kept are written down when somebody asks.
  await overSocket(announcedSocket(data)).request('GET', '/errors', undefined)
  const done = linesOf(join(rig, 'done')).filter(line => line.startsWith('publish '))
  const allowed = sum(({ published }) => published.allowed ?? 0)
  const metrics = await metricsOf(data)
  const doctor = await doctorOf(hatchway)
  return [
    equal(
      'commands answered',
      sum(each => each.answered),
      sum(each => each.asked),
      'as many as were asked',
    ),
    equal(
      'messages and reminders delivered',
      heard.delivered,
      sum(each => each.messages + each.reminders),
      'as many as were sent',
    ),
    none('… lost or delivered twice', heard.odd),
    equal('people’s messages replied to', heard.chats.answered, heard.chats.asked, 'as many as were said'),
    equal('people’s reminders', heard.reminders.came, heard.reminders.asked, 'as many as were asked for'),
    none(
      `${sum(({ refused }) => total(refused))} refused files that are not in errors/`,
      refusals(layout.errors, sent),
    ),
    equal('done that a person allowed', new Set(done).size, allowed, 'each once, as their receipts say'),
    none(
      '… done twice',
      done.filter((line, i) => done.indexOf(line) !== i),
    ),
    equal('console missed something', heard.missed, 0, `in ${heard.reconnects} reconnects`),
    none('what agents and people complained about', [
      ...sent.flatMap(each => each.complaints),
      ...heard.complaints,
    ]),
    equal(
      'not delivered or not answered at the end',
      (metrics.undelivered ?? 0) + (metrics.requests ?? 0),
      0,
      'everything is',
    ),
    equal('processes of sessions at the end', childrenOf(pid).length, 0, 'they ended by themselves'),
    none(
      'what the doctor finds now',
      doctor.filter(found => !doctorBefore.includes(found)),
      'nothing new',
    ),
  ]
}

const patienceMs = 60_000
/** Sessions idle out, and what people did not decide expires. */
async function calm(pid: number, data: string): Promise<void> {
  const deadline = performance.now() + patienceMs + idleMs
  while (performance.now() < deadline) {
    const { undelivered = 0, requests = 0 } = await metricsOf(data)
    if (childrenOf(pid).length === 0 && undelivered + requests === 0) return
    await sleep(250)
  }
}

function linesOf(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').split('\n').filter(Boolean)
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return []
    throw error
  }
}

/** What must not be there once the daemon is stopped. */
export async function accountAfterStop(options: { data: string; hatchway: Hatchway }): Promise<Finding[]> {
  const { data, hatchway } = options
  const audit = await hatchway('audit', 'verify').then(
    () => 'whole',
    error => String(error.stderr).trim(),
  )
  return [
    none('files not taken, or left in the spool', leftFiles(data)),
    none('processes left', processesOf(data)),
    none(
      'mounts left',
      linesOf('/proc/self/mountinfo').filter(line => line.includes(data)),
    ),
    { what: 'the audit log', seen: audit, bound: 'whole', ok: audit === 'whole' },
  ]
}

function leftFiles(data: string): string[] {
  const layout = layoutOf(data)
  const drops = new Set(possibleDrops)
  const waiting = readdirSync(layout.ipc).flatMap(folder =>
    folder === 'errors'
      ? []
      : readdirSync(join(layout.ipc, folder), { withFileTypes: true })
          .filter(each => each.isDirectory() && (drops.has(each.name) || each.name === 'responses'))
          .flatMap(({ name }) =>
            readdirSync(join(layout.ipc, folder, name))
              .filter(file => file !== '.tmp')
              .map(file => join(folder, name, file)),
          ),
  )
  const claimed = readdirSync(layout.spool, { recursive: true, withFileTypes: true })
    .filter(each => !each.isDirectory())
    .map(each => join('spool', each.name))
  return [...waiting, ...claimed]
}

/** Processes that know of the data directory, but for ours. */
function processesOf(data: string): string[] {
  return readdirSync('/proc').flatMap(pid => {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) return []
    try {
      const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
      const about = words + readFileSync(`/proc/${pid}/environ`, 'utf8')
      return about.includes(data) ? [`${pid} ${words.replaceAll('\0', ' ').slice(0, 80)}`] : []
    } catch (error) {
      if (['ENOENT', 'ESRCH', 'EACCES', 'EPERM'].includes(errorCode(error) ?? '')) return []
      throw error
    }
  })
}
