import { readdirSync, readFileSync, unlinkSync, watch } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { post } from '@hatchway/spool'
import { switchUser } from './switch-user.ts'

/**
 * A group that minds its own business beside a hostile one, in a process of its own: it asks for something every few
 * milliseconds until it is told to end, then waits for the last answer and says how it was served.
 *
 *   node witness.ts UID DIRECTORY
 *
 * Every message on its channel ends a phase; `end` ends the last one.
 */
export interface Phase {
  name: string
  answered: number
  p50Ms: number
  p99Ms: number
  maxMs: number
}

export interface Testimony {
  asked: number
  answered: number
  /** what was not as it must be */
  complaints: string[]
  phases: Phase[]
}

const everyMs = 12

async function witness(uid: number, directory: string): Promise<void> {
  if (process.getuid?.() === 0) switchUser(uid)
  const responses = join(directory, 'responses')
  const askedAt = new Map<string, number>()
  const complaints: string[] = []
  const phases: Phase[] = []
  let latencies: number[] = []
  let asked = 0
  let answered = 0
  let ending = false
  const messageIds: number[] = []

  const collect = () => {
    for (const file of readdirSync(responses)) {
      const id = file.replace('.json', '')
      const since = askedAt.get(id)
      if (since === undefined) complaints.push(`an answer nobody asked for: ${file}`)
      else {
        latencies.push(performance.now() - since)
        askedAt.delete(id)
        answered++
        const receipt = JSON.parse(readFileSync(join(responses, file), 'utf8'))
        if (receipt.ok !== true) complaints.push(`${id} was refused: ${JSON.stringify(receipt)}`)
        else messageIds[Number(id.slice(1))] = Number(receipt.result.message_id)
      }
      unlinkSync(join(responses, file))
    }
  }
  const endPhase = (name: string) => {
    const sorted = latencies.sort((a, b) => a - b)
    const at = (share: number) => Math.round((sorted[Math.floor(sorted.length * share)] ?? 0) * 10) / 10
    phases.push({
      name,
      answered: sorted.length,
      p50Ms: at(0.5),
      p99Ms: at(0.99),
      maxMs: Math.round(sorted.at(-1) ?? 0),
    })
    latencies = []
  }
  process.on('message', message => {
    if (message === 'end') ending = true
    else endPhase(String(message))
  })
  process.on('disconnect', () => process.exit(1))
  watch(responses, collect)
  process.send?.('begun')

  while (!ending) {
    const id = `w${asked++}`
    askedAt.set(id, performance.now())
    const payload = { text: `${id} was here` }
    post(join(directory, 'tasks'), JSON.stringify({ version: 1, id, type: 'send_message', payload }))
    await sleep(everyMs)
  }
  while (askedAt.size > 0) {
    await sleep(20)
    collect()
  }
  for (let i = 1; i < messageIds.length; i++) {
    if (Number(messageIds[i]) <= Number(messageIds[i - 1]))
      complaints.push(`w${i} was handled before w${i - 1}`)
  }
  endPhase('last')
  const testimony: Testimony = { asked, answered, complaints, phases }
  process.send?.(testimony)
}

await witness(Number(process.argv[2]), process.argv[3] ?? '')
