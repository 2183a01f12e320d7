import { mkdirSync, readdirSync, readFileSync, renameSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** What stands in for the model in another project's container: it does as it is told, and says what it knows. */
export interface Tools {
  sendMessage(text: string): void
  schedule(prompt: string, at: Date): void
}

/** as long as it takes to type the next message */
const slowMs = 2500

export async function answer(prompt: string, facts: Record<string, unknown>, tools: Tools): Promise<string> {
  await sleep(prompt.includes('slow') ? slowMs : 30)
  if (prompt.includes('announce')) tools.sendMessage(`announcement of ${facts.dialect}`)
  if (prompt.includes('schedule')) tools.schedule('tick', new Date(Date.now() + 3000))
  return `heard ${prompt} ${JSON.stringify({ uid: process.getuid?.(), ...facts })}`
}

/** Whole or not at all, under the project's own temporary name. */
export function write(directory: string, name: string, temporary: string, content: object): void {
  mkdirSync(directory, { recursive: true })
  writeFileSync(join(directory, temporary), JSON.stringify(content, null, 2))
  renameSync(join(directory, temporary), join(directory, name))
}

export const document = async (): Promise<Record<string, unknown>> => {
  let text = ''
  for await (const chunk of process.stdin.setEncoding('utf8')) text += chunk
  return JSON.parse(text)
}

/** Reads and deletes what lies in the box, in the order of the names. */
export function drain(box: string): Record<string, unknown>[] {
  return readdirSync(box)
    .filter(name => name.endsWith('.json'))
    .sort()
    .map(name => {
      const content = JSON.parse(readFileSync(join(box, name), 'utf8'))
      unlinkSync(join(box, name))
      return content
    })
}

/** Whether it was there; it is gone now. */
export function heeded(sentinel: string): boolean {
  try {
    unlinkSync(sentinel)
    return true
  } catch {
    return false
  }
}

/** What comes while the agent works is held for it, as the stream into a real one holds it. */
export function createStream(first: string) {
  const waiting = [first]
  let wake = () => {}
  let isOver = false
  return {
    push(text: string) {
      waiting.push(text)
      wake()
    },
    end() {
      isOver = true
      wake()
    },
    async *[Symbol.asyncIterator]() {
      for (;;) {
        const next = waiting.shift()
        if (next !== undefined) yield next
        else if (isOver) return
        else
          await new Promise<void>(resolve => {
            wake = resolve
          })
      }
    },
  }
}

export const log = (text: string) => console.error(`[agent-runner] ${text}`)
