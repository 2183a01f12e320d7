import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { createSpool, type Spool, type SpoolOptions } from './spool.ts'
import type { ClaimedFile, Report } from './types.ts'

/** What the tests of this package are built from: real folders, a spool with a consumer that remembers, real processes. */

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'spool-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Runs a program of the system, for what Node itself cannot do. */
export const run = (program: string, ...args: string[]) => execFileSync(program, args, { stdio: 'ignore' })

/** Waits for a condition; the test's own time limit ends it. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await sleep(2)
}

/** Puts a file where a reader sees it, whole, under exactly this name: as a foreign writer does. */
export const drop = (directory: string, name: string, content = '{}') =>
  writeFileSync(join(directory, name), content)

export interface Rig {
  root: string
  claimed: string
  spool: Spool
  reports: Report[]
  /** everything handed over, in order, each time it was */
  handed: ClaimedFile[]
  batches: ClaimedFile[][]
  /** adds an inbox with its directories made; returns their paths */
  inbox(id: string, ...drops: string[]): string[]
  /** adds an inbox without making its directories; returns its path */
  absentInbox(id: string, ...drops: string[]): string
  names(inbox?: string): string[]
  kinds(inbox?: string): string[]
  claimedFiles(): string[]
}

type RigOptions = Partial<Omit<SpoolOptions, 'consume'>> & {
  root?: string
  /** instead of taking everything */
  consume?: (files: readonly ClaimedFile[], spool: Spool) => void | Promise<void>
}

export function createRig({ root = temporaryFolder(), consume, ...options }: RigOptions = {}): Rig {
  const claimed = join(root, 'spool')
  const reports: Report[] = []
  const handed: ClaimedFile[] = []
  const batches: ClaimedFile[][] = []
  const spool = createSpool({
    claimed,
    firstSeq: 1,
    fileLimit: 1024,
    waitingLimit: 50_000,
    events: 'auto',
    pollMinMs: 1,
    pollMaxMs: 20,
    report: report => reports.push(report),
    ...options,
    consume(files) {
      handed.push(...files)
      batches.push([...files])
      if (consume) return consume(files, spool)
      spool.discard(files)
    },
  })
  onTestFinished(() => spool.stop())
  const pathOf = (id: string) => join(root, 'ipc', id)
  return {
    root,
    claimed,
    spool,
    reports,
    handed,
    batches,
    inbox(id, ...drops) {
      const path = pathOf(id)
      const paths = drops.map(name => join(path, name))
      for (const each of paths) mkdirSync(each, { recursive: true })
      spool.add({ id, path, drops })
      return paths
    },
    absentInbox(id, ...drops) {
      const path = pathOf(id)
      spool.add({ id, path, drops })
      return path
    },
    names: id => handed.filter(file => id === undefined || file.inbox === id).map(file => file.name),
    kinds: id => reports.filter(report => id === undefined || report.inbox === id).map(report => report.kind),
    claimedFiles: () => readdirSync(claimed).flatMap(bucket => readdirSync(join(claimed, bucket))),
  }
}

export interface Child {
  process: ChildProcess
  /** what it printed, once it has ended */
  output: Promise<string>
}

/** Starts `rig.process.ts`, or a copy of it, with a command. It is ended with the test. */
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
  /** a program, with its arguments, that starts it, such as `unshare` */
  under?: readonly string[]
  uid?: number
}
