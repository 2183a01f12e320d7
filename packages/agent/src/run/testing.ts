import { spawn } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import {
  type RunEvent,
  type RunInput,
  type RunStart,
  recordSeparator,
  runEventSchema,
} from '@hatchway/protocol'
import { createNames, post } from '@hatchway/spool'
import { onTestFinished } from 'vitest'
import { type Live, openLive } from '../../../testing/src/daemon/in-process.ts'

/** What tests of the runner share: the runner as a process of its own, and what it says as the host would read it. */
const bundle = join(import.meta.dirname, '..', '..', 'dist', 'agent.mjs')

export async function open(): Promise<Live> {
  const live = await openLive({ agents: { enabled: 'no' }, timezone: 'Europe/Berlin' })
  onTestFinished(() => live.close())
  for (const folder of ['main', 'family']) {
    await live.host.addGroup({
      folder,
      jid: `${folder}@chat`,
      name: folder,
      main: folder === 'main',
      dialect: 'hatchway',
    })
  }
  await live.start()
  return live
}

let inputs = 0
export const said = (text: string): RunInput => ({
  id: `input-${++inputs}`,
  text,
  sender: 'ann@chat',
  sender_name: 'Ann',
  timestamp: new Date().toISOString(),
})

export type Wish = Partial<Omit<RunStart, 'inputs'>> & { inputs?: readonly (string | RunInput)[] }

export const documentOf = ({ inputs = ['help'], ...wish }: Wish): RunStart => ({
  version: 1,
  run_id: 'run-1',
  kind: 'chat',
  group: { folder: 'family', name: 'Family', jid: 'family@chat', main: false },
  assistant: 'Hatch',
  timezone: 'Europe/Berlin',
  session_id: null,
  model: null,
  task: null,
  context: [],
  driver: { name: 'concierge' },
  events: 'auto',
  ...wish,
  inputs: inputs.map(input => (typeof input === 'string' ? said(input) : input)),
})

export const taskOf = (prompt: string, script: string | null = null): Wish => ({
  kind: 'task',
  task: { id: '1', occurrence_id: 'o1', script },
  inputs: [prompt],
})

export interface Run {
  events: RunEvent[]
  /** what stood on standard output beside the events */
  strays: () => string
  of<T extends RunEvent['type']>(type: T): Extract<RunEvent, { type: T }>[]
  results(): (string | null)[]
  say(text: string): string
  put(name: string, content: string): void
  waits(name: string): boolean
  finish(): void
  kill(signal: NodeJS.Signals): void
  exited: Promise<number | null>
  log(): string
}

export function start(
  live: Live,
  document: Wish | string,
  { program = bundle, env = {} }: { program?: string; env?: Record<string, string> } = {},
): Run {
  const ipc = join(live.layout.ipc, 'family')
  const group = join(live.data, 'groups', 'family')
  mkdirSync(join(group, '.home'), { recursive: true })
  const child = spawn(process.execPath, [program, 'run'], {
    cwd: group,
    env: {
      PATH: process.env.PATH ?? '',
      NODE_COMPILE_CACHE: process.env.TEST_COMPILE_CACHE ?? '',
      TZ: 'Europe/Berlin',
      HOME: join(group, '.home'),
      HATCHWAY_IPC: ipc,
      HATCHWAY_GROUP: 'family',
      HATCHWAY_GROUP_DIR: group,
      HATCHWAY_MAIN: '0',
      ...env,
    },
  })
  child.stdin.end(typeof document === 'string' ? document : JSON.stringify(documentOf(document)))
  const exited = new Promise<number | null>(resolve => child.on('close', resolve))
  return follow(live, {
    stdout: child.stdout,
    stderr: child.stderr,
    exited,
    kill: signal => void child.kill(signal),
  })
}

interface StartedRun {
  stdout: Readable
  stderr: Readable
  exited: Promise<number | null>
  kill(signal: NodeJS.Signals): void
}

/** A run that has been started, however that was, with the host's side of it played by the test. */
export function follow(live: Live, started: StartedRun): Run {
  const ipc = join(live.layout.ipc, 'family')
  const events: RunEvent[] = []
  let strays = ''
  let log = ''
  let rest = ''
  started.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      if (line.startsWith(recordSeparator)) events.push(runEventSchema.parse(JSON.parse(line.slice(1))))
      else strays += line
    }
  })
  started.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    log += chunk
  })
  onTestFinished(async () => {
    started.kill('SIGKILL')
    await started.exited
  })
  const of = <T extends RunEvent['type']>(type: T) =>
    events.filter((event): event is Extract<RunEvent, { type: T }> => event.type === type)
  const input = join(ipc, 'input')
  const freshName = createNames()
  const put = (name: string, content: string) => void post(input, content, { name })
  return {
    events,
    strays: () => strays + rest,
    of,
    results: () => of('result').map(({ text }) => text),
    put,
    say(text) {
      const name = freshName()
      const { id: _, ...message } = said(text)
      put(name, JSON.stringify({ version: 1, type: 'message', ...message }))
      return name.slice(0, -'.json'.length)
    },
    waits: name => existsSync(join(input, name)),
    finish: () => put('_close', ''),
    kill: started.kill,
    exited: started.exited,
    log: () => log,
  }
}

export const usedIn = (run: Run) => run.of('used').flatMap(({ inputs }) => inputs)
