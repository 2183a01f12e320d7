import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { errorCode } from '@hatchway/spool'
import { layoutOf } from '../../../host/src/base/layout.ts'
import { createRandom } from '../random.ts'
import { messageActivities } from './activities/messages.ts'
import { otherActivities } from './activities/others.ts'
import { requestActivities } from './activities/requests.ts'
import { taskActivities } from './activities/tasks.ts'
import { byLife, type SoakGroup } from './plan.ts'
import { createPoster } from './poster.ts'
import type { FromAgents } from './traffic.ts'

/**
 * Many agents in one process outside the daemon, which have nothing of it but their directories: they write files as
 * their containers do, and read and remove their answers.
 *
 *   node agents.process.ts JSON
 *
 * `begin` on its channel: it writes. `end`: it waits for the last answers and tells what it has sent.
 */
export interface AgentsOrder {
  process: number
  data: string
  groups: SoakGroup[]
  /** files in a second */
  rate: number
  /** only what is named so; empty: everything */
  only: string[]
  /** of those who ask and of the others, how many have files refused */
  refusing: number
  seed: number
  /** whom agents run as where the host is root */
  uid: number
}

const order: AgentsOrder = JSON.parse(process.argv[2] ?? '')
if (process.getuid?.() === 0) {
  process.setgroups?.([])
  process.setgid?.(order.uid)
  process.setuid?.(order.uid)
}
const random = createRandom(order.seed)
const poster = createPoster({ process: order.process, data: order.data, random })
const groups = byLife(order.groups)
const activities = [
  ...messageActivities(poster, groups),
  ...taskActivities(poster, groups),
  ...requestActivities(poster, groups),
  ...otherActivities(poster, groups, order.refusing),
].filter(({ name }) => order.only.length === 0 || order.only.includes(name))
const total = activities.reduce((sum, { often }) => sum + often, 0)

/** what is not over yet */
const busy = new Set<Promise<unknown>>()

function once(): void {
  let place = random.below(total)
  for (const { often, act } of activities) {
    place -= often
    if (place >= 0) continue
    const work: Promise<unknown> = Promise.try(act)
      .catch(error => poster.complain(`an agent failed: ${error}`))
      .finally(() => busy.delete(work))
    busy.add(work)
    return
  }
}

const filesKept = 2
/** Agents keep their folders tidy: what people have sent them is removed when it is no longer new. */
function tidy(): void {
  for (const { folder } of groups.of('inhabited')) {
    const attachments = join(layoutOf(order.data).groups, folder, 'attachments')
    let names: string[] = []
    try {
      names = readdirSync(attachments)
    } catch (error) {
      if (errorCode(error) !== 'ENOENT') throw error
    }
    for (const name of names.sort().slice(0, -filesKept)) rmSync(join(attachments, name), { force: true })
  }
}

const mostOpen = 400
const stepMs = 20
const tickMs = 1000
const patienceMs = 60_000
const tell = (message: FromAgents, told = () => {}) => process.send?.(message, told)
const tick = () => tell({ kind: 'tick', posted: poster.written(), latencies: poster.receipts.latencies() })

async function live(): Promise<void> {
  const begin = Promise.withResolvers<void>()
  let ending = false
  process.on('message', message => {
    if (message === 'begin') begin.resolve()
    else ending = true
  })
  const { receipts } = poster
  const reading = [
    ...groups.of('asking', 'guarded', 'main'),
    ...groups.of('flat').filter(({ dialect }) => dialect === 'pynchy'),
  ]
  for (const group of reading) receipts.watch(join(poster.inboxOf(group), 'responses'))
  await Promise.all(groups.of('guarded').map(group => poster.callFor(group, 'service call', 'read_page', {})))
  tell({ kind: 'ready' })
  await begin.promise

  let due = 0
  let last = performance.now()
  let told = last
  while (!ending) {
    await sleep(stepMs)
    const now = performance.now()
    // Those who fell behind do not make up for it: a machine that slept would be flooded.
    due = Math.min(due + ((now - last) / 1000) * order.rate, order.rate)
    last = now
    for (; due >= 1 && receipts.open() < mostOpen; due--) once()
    if (now - told < tickMs) continue
    told = now
    receipts.lookEverywhere()
    tidy()
    tick()
  }
  while (busy.size > 0 && receipts.oldestMs() < patienceMs) {
    await sleep(50)
    receipts.lookEverywhere()
  }
  tick()
  tell(poster.sent, () => process.exit(0))
}

process.on('SIGINT', () => {})
process.on('disconnect', () => process.exit(1))
await live()
