import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { markedProcesses } from '../../../host/src/base/processes.ts'
import { isRoot } from './available.ts'
import type { Testbed } from './testbed.ts'

/** Of runs and jobs that are over: processes that carry the installation's mark, its control groups, its mounts. */
export function findLeftovers(testbed: Testbed, installation: string | undefined): string[] {
  const { home, layout } = testbed
  return [
    ...(installation === undefined ? [] : marked(installation)),
    ...(installation === undefined ? [] : controlGroups(installation)),
    ...mountsBelow(home)
      .filter(path => path !== testbed.data)
      .map(path => `the mount ${path}`),
    ...filesIn(join(layout.state, 'runs')),
    ...filesIn(layout.staging),
  ]
}

const marked = (installation: string): string[] =>
  ['docker', 'podman', 'bubblewrap', 'process', 'job', 'deploy', 'daemon'].flatMap(kind =>
    markedProcesses(kind, installation)
      // Dead and only not yet buried counts as over.
      .filter(({ pid }) => !/\) [ZX] /.test(readIfThere(`/proc/${pid}/stat`) ?? ') X '))
      .map(({ pid, runId }) => `process ${pid} of ${kind} ${runId}`),
  )

const controlGroupsRoot = '/sys/fs/cgroup'
function controlGroups(installation: string): string[] {
  if (!isRoot || !existsSync(controlGroupsRoot)) return []
  const homes = [
    controlGroupsRoot,
    ...readdirSync(controlGroupsRoot).map(name => join(controlGroupsRoot, name)),
  ]
    .map(path => join(path, 'hatchway'))
    .filter(path => existsSync(path))
  return homes.flatMap(path =>
    readdirSync(path)
      .filter(name => name.startsWith(`${installation}@`))
      .map(name => `the control group ${join(path, name)}`),
  )
}

const mountsBelow = (home: string): string[] =>
  readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .map(line => line.split(' ')[1] ?? '')
    .filter(path => path.startsWith(`${home}/`))

const filesIn = (directory: string): string[] =>
  existsSync(directory) ? readdirSync(directory).map(name => `the file ${join(directory, name)}`) : []

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1')
  } catch (error) {
    if (error instanceof Error && 'code' in error) return undefined
    throw error
  }
}
