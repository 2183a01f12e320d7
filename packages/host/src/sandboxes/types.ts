import type { Readable, Writable } from 'node:stream'
import type { Group } from '@hatchway/protocol'
import type { sandboxOrder } from '../config/names.ts'
import type { SentTexts } from './sent-texts.ts'

export type SandboxName = (typeof sandboxOrder)[number]

/** A directory or file of the host that a sandbox sees. */
export interface Mount {
  from: string
  to: string
  writable: boolean
}

/** Everything a sandbox needs to know to start one run. What is not named here the run does not get. */
export interface SandboxSpec {
  /** of this installation: only what carries it is ever ended by us */
  installation: string
  runId: string
  group: Pick<Group, 'folder'>
  /** program and arguments; undefined: the image's own */
  command: readonly string[] | undefined
  workingDirectory: string
  environment: Readonly<Record<string, string>>
  /** in the order they are laid over each other */
  mounts: readonly Mount[]
  image: string | undefined
  /** left out: nothing beside it */
  sidecar?: Sidecar
  user: { uid: number; gid: number }
  limits: { memoryMb: number; processes: number; cpus: number; temporaryMb: number }
}

/**
 * A program of ours in the same network namespace, for an image that has none inside. It prints a line when it is ready,
 * ends with its standard input, and the run ends with it. Only container engines have it.
 */
export interface Sidecar {
  command: readonly string[]
  environment: Readonly<Record<string, string>>
  mounts: readonly Mount[]
}

export interface SandboxExit {
  code: number | null
  signal: NodeJS.Signals | null
  /** why the engine failed: the image is missing, the engine does not answer */
  problem?: string
}

/** One started sandbox. */
export interface SandboxProcess {
  /** as the engine knows it: a container's name, or a process number */
  name: string
  stdin: Writable
  stdout: Readable
  stderr: Readable
  exited: Promise<SandboxExit>
  /** what its model sends with a tool, where that is worth knowing */
  sent?: SentTexts | undefined
  /** resolves when nothing of it runs any more */
  kill(): Promise<void>
}

export interface SandboxCheck {
  available: boolean
  /** why, or why not, and what to do; for `hatchway doctor` */
  reason: string
}

export interface Sandbox {
  name: SandboxName
  isolated: boolean
  /** whether runs are started from images: then a run may bring its own programs */
  hasImages: boolean
  check(): Promise<SandboxCheck>
  start(spec: SandboxSpec): Promise<SandboxProcess>
  /** ends what an earlier process of this installation left running; the run ids it found */
  endOrphans(installation: string): Promise<readonly string[]>
}
