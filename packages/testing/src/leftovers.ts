import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { until } from '../../host/src/base/pause.ts'
import { signal } from '../../host/src/base/processes.ts'
import { ask } from '../../host/src/base/programs.ts'
import { clear } from './sandboxes/engines.ts'

/**
 * All tests of a run keep their files below one folder, which is theirs alone. Whatever is still there after the last
 * test, or is still running and knows the folder, was left behind: it is removed, and the run fails and names it.
 */
export default function setup({ config }: Pick<TestProject, 'config'>) {
  const root = config.env.TMPDIR
  if (root === undefined) return undefined
  clearAbandoned(dirname(root))
  // Of a run that had our number and was killed.
  rmSync(root, { recursive: true, force: true })
  mkdirSync(root)
  writeFileSync(join(root, marker), '')
  // Tests run programs as other users, too.
  chmodSync(root, 0o1777)
  return async () => {
    const left = await clearUp(root)
    if (left.length === 0) return
    throw new Error(`The tests have left behind, and should have ended or removed:\n${left.join('\n')}`)
  }
}

/** Elsewhere only files are looked for. */
const hasProcesses = existsSync('/proc/self/stat')
/** A program that was told to end may need so long on a crowded machine. */
const usualPatienceMs = 60_000
/** tells a folder of ours from those of others */
const marker = '.hatchway-tests'
/** What programs of others keep for the next time, in a temporary folder or in a home, which for some tests is this one. */
const isCache = /^(\..+|node-compile-cache|libpod_lock|(containers-user|podman-run)-\d+)$/
/** Where a daemon was killed while it tried a sandbox, the next trial on this machine removes what it left. */
const isTrial = / -n hatchway-check-trial-/

/** Removes everything below the folder, and ends every process that knows it; in words, what should not have been there. */
export async function clearUp(root: string, patienceMs = usualPatienceMs): Promise<string[]> {
  await until(patienceMs, () => processesOf(root).every(({ command }) => isTrial.test(command)))
  const processes = processesOf(root)
  for (const { pid, command } of processes) {
    await removeContainer(command)
    signal(pid, 'SIGKILL')
  }
  const files = existsSync(root) ? readdirSync(root).filter(name => !isCache.test(name)) : []
  if (hasProcesses) await clear(root)
  else rmSync(root, { recursive: true, force: true })
  return [
    ...processes
      .filter(({ command }) => !isTrial.test(command))
      .map(({ pid, command }) => `  process ${pid}: ${command.slice(0, 300)}`),
    ...files.map(name => `  ${join(root, name)}`),
  ]
}

/** Podman's programs do not know where a container came from, except by the one that watches it. */
async function removeContainer(command: string): Promise<void> {
  const id = /^\S*conmon .*? -c ([0-9a-f]{64}) /.exec(command)?.[1]
  if (id === undefined) return
  const given = [...command.matchAll(/--exit-command-arg (\S*)/g)].map(([, argument = '']) => argument)
  const forEngine = given.slice(0, given.indexOf('container'))
  await ask('podman', [...forEngine, 'rm', '--force', '--time', '0', id], { timeoutMs: 20_000 })
}

interface Process {
  pid: number
  command: string
}

/** Those that carry the folder in their environment or command line, work in it, or have a file of it open. */
export function processesOf(root: string): Process[] {
  if (!hasProcesses) return []
  return readdirSync('/proc')
    .map(Number)
    .filter(pid => Number.isInteger(pid) && pid !== process.pid)
    .flatMap(pid => {
      const stat = read(`/proc/${pid}/stat`)
      const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      const command = read(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').trim()
      // Dead and not yet buried counts as over; our own workers end after us.
      const isOver = state === undefined || state === '' || 'ZX'.includes(state)
      if (isOver || (Number(parent) === process.pid && command.includes('vitest'))) return []
      return command.includes(root) || isTouching(pid, root) ? [{ pid, command }] : []
    })
}

function isTouching(pid: number, root: string): boolean {
  const environment = read(`/proc/${pid}/environ`).split('\0')
  const links = ['cwd', ...namesIn(`/proc/${pid}/fd`).map(name => `fd/${name}`)]
  return (
    environment.some(entry => entry.includes(root)) ||
    links.some(name => `${linkAt(`/proc/${pid}/${name}`)}/`.startsWith(`${root}/`))
  )
}

/** Of runs that were killed, and can no longer remove it themselves. */
function clearAbandoned(directory: string): void {
  for (const name of namesIn(directory)) {
    const number = /^hw([0-9a-z]+)$/.exec(basename(name))?.[1]
    if (number === undefined || !hasProcesses || !existsSync(join(directory, name, marker))) continue
    if (existsSync(`/proc/${Number.parseInt(number, 36)}`)) continue
    orNothing(() => rmSync(join(directory, name), { recursive: true, force: true }), undefined)
  }
}

/** Processes end while they are looked at, and those of others may be out of reach: both have nothing to show. */
const orNothing = <T>(look: () => T, nothing: T): T => {
  try {
    return look()
  } catch (error) {
    if (error instanceof Error && 'code' in error) return nothing
    throw error
  }
}
const read = (path: string) => orNothing(() => readFileSync(path, 'utf8'), '')
const linkAt = (path: string) => orNothing(() => readlinkSync(path), '')
const namesIn = (path: string) => orNothing<string[]>(() => readdirSync(path), [])
