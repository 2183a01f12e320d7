import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { createSpool, type Spool, type SpoolOptions } from '../spool.ts'
import type { ClaimedFile, Report } from '../types.ts'

/** Test setup: real folders, a spool with a consumer that records what it gets, and real processes. */

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'spool-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Runs a system program, for things that Node cannot do. */
export const run = (program: string, ...args: string[]) => execFileSync(program, args, { stdio: 'ignore' })

/** Waits for a condition, until the test times out. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await sleep(2)
}

/** Writes a file directly under its final name, as a writer that does not use `post` does. */
export const putFile = (directory: string, name: string, content = '{}') =>
  writeFileSync(join(directory, name), content)

export interface Rig {
  root: string
  claimed: string
  spool: RigSpool
  reports: Report[]
  /** every delivered file in order; one that is delivered twice is listed twice */
  delivered: ClaimedFile[]
  batches: ClaimedFile[][]
  /** creates the directories of an inbox and adds it; returns their paths */
  inbox(id: string, ...subdirectories: string[]): string[]
  /** adds an inbox without creating its directories; returns its path */
  missingInbox(id: string, ...subdirectories: string[]): string
  names(inbox?: string): string[]
  kinds(inbox?: string): string[]
  claimedFiles(): string[]
}

/** its consumer records what it gets */
type RigSpool = Omit<Spool, 'start'> & { start(): Promise<void> }

type RigOptions = Partial<SpoolOptions> & {
  root?: string
  /** by default everything is discarded */
  consume?: (files: readonly ClaimedFile[], spool: Spool) => void | Promise<void>
}

export function createRig({ root = temporaryFolder(), consume, ...options }: RigOptions = {}): Rig {
  const claimed = join(root, 'spool')
  const reports: Report[] = []
  const delivered: ClaimedFile[] = []
  const batches: ClaimedFile[][] = []
  const created = createSpool({
    claimed,
    firstSeq: 1,
    fileLimit: 1024,
    waitingLimit: 50_000,
    events: 'auto',
    pollMinMs: 1,
    pollMaxMs: 20,
    report: report => reports.push(report),
    ...options,
  })
  const spool: RigSpool = {
    ...created,
    start: () =>
      created.start(files => {
        delivered.push(...files)
        batches.push([...files])
        if (consume) return consume(files, created)
        created.discard(files)
      }),
  }
  onTestFinished(() => spool.stop())
  const pathOf = (id: string) => join(root, 'ipc', id)
  return {
    root,
    claimed,
    spool,
    reports,
    delivered,
    batches,
    inbox(id, ...subdirectories) {
      const path = pathOf(id)
      const paths = subdirectories.map(name => join(path, name))
      for (const each of paths) mkdirSync(each, { recursive: true })
      spool.add({ id, path, subdirectories })
      return paths
    },
    missingInbox(id, ...subdirectories) {
      const path = pathOf(id)
      spool.add({ id, path, subdirectories })
      return path
    },
    names: id => delivered.filter(file => id === undefined || file.inbox === id).map(file => file.name),
    kinds: id => reports.filter(report => id === undefined || report.inbox === id).map(report => report.kind),
    claimedFiles: () => readdirSync(claimed).flatMap(bucket => readdirSync(join(claimed, bucket))),
  }
}

export interface Child {
  process: ChildProcess
  /** its output, once it has ended */
  output: Promise<string>
}

/** Runs a command of `rig.process.ts`, or of a copy of it. The process is killed when the test ends. */
export function startChild(command: readonly string[], options: StartOptions = {}): Child {
  const script = options.script ?? fileURLToPath(new URL('./rig.process.ts', import.meta.url))
  const [program = process.execPath, ...before] = [...(options.under ?? []), process.execPath, script]
  const child = spawn(program, [...before, ...command], {
    stdio: ['ignore', 'pipe', 'inherit'],
    cwd: options.cwd,
    ...(options.uid === undefined ? {} : { uid: options.uid, gid: options.uid }),
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const output = new Promise<string>((resolve, reject) => {
    let text = ''
    child.stdout.setEncoding('utf8').on('data', (piece: string) => {
      text += piece
    })
    child.on('error', reject)
    child.on('close', (code, signal) =>
      code === 0 ? resolve(text) : reject(new Error(`${command.join(' ')} ended with ${code ?? signal}`)),
    )
  })
  return { process: child, output }
}

interface StartOptions {
  script?: string
  cwd?: string
  /** a program and its arguments that start the process, such as `unshare` */
  under?: readonly string[]
  uid?: number
}
