import { randomUUID } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import type { Room } from '../../runs/hooks.ts'
import type { Mount } from '../../sandboxes/types.ts'
import { ServiceRefusal } from '../../services/define.ts'
import { type State, states } from './scripts.ts'
import { visibleEnd, visibleLine } from './words.ts'

/** A script that is run for a group: in a sandbox like its agent's, as the same user, and with nothing but these mounts. */
export interface Errand {
  folder: string
  script: string
  environment: Readonly<Record<string, string>>
  mounts: readonly Mount[]
  workingDirectory: string
  timeoutMs: number
  signal: AbortSignal
}

/** What a script said of the worktree. Every word of it is the agent's. */
export interface Report {
  state: State
  /** of the words that come once */
  facts: ReadonlyMap<string, string>
  files: readonly string[]
  /** the end of what git complained about */
  complaints: string
}

const largestHeader = 65_536
const keptComplaints = 4096
const separator = Buffer.from('\n\n')

/** Runs a script that reports, and puts what follows its report into a file, up to so many bytes. */
export async function askInside(
  room: Room,
  errand: Errand,
  pack?: { path: string; most: number },
): Promise<Report> {
  let header = Buffer.alloc(0)
  let isOver = false
  let size = 0
  const file: FileHandle | undefined = pack && (await open(pack.path, 'w', 0o600))
  try {
    const { complaints, problem } = await inside(room, errand, async part => {
      let rest = part
      if (!isOver) {
        header = Buffer.concat([header, part])
        const end = header.indexOf(separator)
        if (end < 0 && header.length > largestHeader) throw new TooMuch('The worktree’s report is too long.')
        if (end < 0) return
        isOver = true
        rest = header.subarray(end + separator.length)
        header = header.subarray(0, end)
      }
      if (rest.length === 0 || !pack || !file) return
      size += rest.length
      if (size > pack.most)
        throw new TooMuch(`The commits are more than ${Math.round(pack.most / 1_048_576)} MiB.`)
      await file.writeFile(rest)
    })
    const report = reportOf(isOver ? header.toString('utf8') : '', complaints)
    if (report) return report
    throw new ServiceRefusal(
      'service_failed',
      `Git in the worktree came to no end: ${problem ?? (complaints || 'it said nothing')}`,
    )
  } finally {
    await file?.close()
  }
}

/** Runs a command of the operator's, and keeps the end of what it prints. */
export async function tryInside(
  room: Room,
  errand: Errand,
): Promise<{ isOk: boolean; how: string; output: string }> {
  let output = ''
  const { code, problem, complaints, isLate } = await inside(room, errand, part => {
    output = (output + part.toString('utf8')).slice(-keptComplaints)
  })
  const how = isLate
    ? `took more than ${errand.timeoutMs / 1000} s`
    : (problem ?? (code === null ? 'was ended by a signal' : `ended with code ${code}`))
  return { isOk: code === 0 && !isLate, how, output: visibleEnd(`${output}\n${complaints}`) }
}

class TooMuch extends Error {}

async function inside(room: Room, errand: Errand, hear: (part: Buffer) => void | Promise<void>) {
  errand.signal.throwIfAborted()
  const started = await room.sandbox.start({
    installation: room.installation,
    runId: `sync-${randomUUID()}`,
    group: { folder: errand.folder },
    command: ['/bin/sh', '-c', errand.script],
    workingDirectory: errand.workingDirectory,
    environment: {
      PATH: '/usr/local/bin:/usr/bin:/bin',
      LANG: 'C.UTF-8',
      HOME: '/tmp',
      GIT_TERMINAL_PROMPT: '0',
      GIT_CONFIG_GLOBAL: '/dev/null',
      ...errand.environment,
    },
    mounts: errand.mounts,
    image: room.image,
    user: room.user,
    limits: room.limits,
  })
  let isLate = false
  const kill = () => {
    // How it ends is told by `exited`.
    started.kill().catch(() => {})
  }
  const timer = setTimeout(() => {
    isLate = true
    kill()
  }, errand.timeoutMs)
  errand.signal.addEventListener('abort', kill)
  let complaints = ''
  started.stderr.on('data', (part: Buffer) => {
    complaints = (complaints + part.toString('utf8')).slice(-keptComplaints)
  })
  started.stdin.end()
  try {
    for await (const part of started.stdout) await hear(part)
    const { code, problem } = await started.exited
    errand.signal.throwIfAborted()
    return {
      code,
      problem: isLate ? `it took more than ${errand.timeoutMs / 1000} s` : problem,
      complaints: visibleEnd(complaints, 1000),
      isLate,
    }
  } catch (error) {
    await started.kill()
    if (error instanceof TooMuch) throw new ServiceRefusal('quota_exceeded', error.message)
    throw error
  } finally {
    clearTimeout(timer)
    errand.signal.removeEventListener('abort', kill)
  }
}

function reportOf(text: string, complaints: string): Report | undefined {
  const facts = new Map<string, string>()
  const files: string[] = []
  for (const line of text.split('\n')) {
    const [name = '', ...words] = line.split(' ')
    const value = words.join(' ')
    if (name === 'file') files.push(visibleLine(value))
    else facts.set(name, visibleLine(value))
  }
  const state = states.find(known => known === facts.get('state'))
  return state && { state, facts, files, complaints }
}
