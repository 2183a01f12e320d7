import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmdirSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { join } from 'node:path'
import { createFileReader, errorCode, type FileContent, type Owner } from '@hatchway/spool'
import { z } from 'zod'
import { type Layout, ownedDirectory } from '../base/layout.ts'
import { empty } from '../base/remove-tree.ts'
import type { Mount } from '../sandboxes/types.ts'

/**
 * A hatch whose root a container may write to. Pynchy completes a todo by writing `todos.json.tmp` beside `todos.json` and
 * renaming it over it, which a read-only root does not allow. So its root is a directory of its own, outside `ipc/`:
 *
 *   input/, tasks/, …      mount points for the same directories as ever: they can be neither moved nor removed
 *   .host/                 `ipc/{folder}` itself, read-only
 *   todos.json, …          links to the snapshots in `.host/`, so that they are always the newest
 *
 * Nothing that the container puts there is read but one thing: a regular file in the place of the link `todos.json` is its
 * wish to complete what is done in it. It is granted, and the link is put back: the host's list is the one that counts.
 */
export interface HatchView {
  /** lies outside every mount but its own run's */
  mounts: readonly Mount[]
  /** hears what an earlier run left, and makes everything as it should be; only while nothing of the group runs */
  prepare(): Promise<void>
  /** looks whether the agent asks for a change of its todos */
  scan(): void
}

const hostAt = '.host'
const fileLimit = 1_048_576
const wishesSchema = z.array(z.object({ id: z.string().max(64), done: z.boolean() })).max(10_000)

/** One for all runs: it holds as much memory as the largest file. */
let shared: ((path: string) => FileContent) | undefined

export function createHatchView(options: {
  layout: Layout
  folder: string
  owner: Owner | undefined
  /** where the hatch is inside */
  ipcAt: string
  /** the names of its snapshots */
  snapshots: readonly string[]
  complete(ids: readonly string[]): void
}): HatchView {
  const { layout, folder, owner, ipcAt, snapshots } = options
  const hatch = join(layout.ipc, folder)
  const root = join(layout.views, folder)
  const directories = readdirSync(hatch, { withFileTypes: true })
    .filter(entry => entry.isDirectory())
    .map(({ name }) => name)
  const todos = join(root, 'todos.json')
  /** no folder has a name that begins so */
  const taken = join(layout.views, `.${folder}`)
  let links = 0

  const link = (name: string) => {
    // Made where the container cannot see it, and renamed over whatever it has put there.
    const made = join(layout.staging, `${folder}-${process.pid}-${++links}.link`)
    symlinkSync(`${hostAt}/${name}`, made)
    try {
      renameSync(made, join(root, name))
    } catch (error) {
      if (errorCode(error) !== 'EISDIR') throw error
      rmdirSync(join(root, name))
      renameSync(made, join(root, name))
    }
  }
  /** Out of the container's reach first: what is read then is what was there, and the next wish is another file. */
  const takeWish = (): readonly string[] => {
    if (!lstatSync(todos, { throwIfNoEntry: false })?.isFile()) return []
    renameSync(todos, taken)
    try {
      return wishesIn(taken)
    } finally {
      rmSync(taken, { recursive: true })
    }
  }
  const isOurs = (): boolean =>
    lstatSync(todos, { throwIfNoEntry: false })?.isSymbolicLink() === true &&
    readlinkSync(todos) === `${hostAt}/todos.json`

  const scan = () => {
    if (isOurs()) return
    const wishes = takeWish()
    if (wishes.length > 0) options.complete(wishes)
    link('todos.json')
  }

  return {
    mounts: [
      { from: root, to: ipcAt, writable: true },
      { from: hatch, to: `${ipcAt}/${hostAt}`, writable: false },
      ...directories.map(name => ({ from: join(hatch, name), to: `${ipcAt}/${name}`, writable: true })),
    ],
    async prepare() {
      mkdirSync(layout.views, { recursive: true, mode: 0o700 })
      const left = takeWish()
      if (left.length > 0) options.complete(left)
      // Made anew, as the group may have another owner since.
      await empty(root)
      if (existsSync(root)) rmdirSync(root)
      ownedDirectory(root, owner)
      for (const name of [...directories, hostAt]) mkdirSync(join(root, name), { mode: 0o755 })
      for (const name of snapshots) link(name)
    },
    scan,
  }
}

/** The ids of what is done in it. Anything but a small regular file of the right shape says nothing. */
function wishesIn(path: string): readonly string[] {
  shared ??= createFileReader(fileLimit)
  const { text, problem } = shared(path)
  if (problem !== undefined) return []
  try {
    return wishesSchema
      .parse(JSON.parse(text))
      .filter(({ done }) => done)
      .map(({ id }) => id)
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof z.ZodError) return []
    throw error
  }
}
