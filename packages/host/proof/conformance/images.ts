import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { findProgram } from '../../src/base/programs.ts'
import type { Column } from './dialects/index.ts'

/**
 * Images such as the other projects build, without a network: the machine's own Node, shell and git with the libraries
 * they need, and a program that behaves as theirs does as the entry point. Nothing of ours is in them.
 */
export const imageOf = ({ id }: Pick<Column, 'id'>) => `container-of-${id}:latest`

const inside = join(import.meta.dirname, 'inside')
/** what agents and git use in there */
const tools = ['git', 'git-upload-pack', 'mkdir', 'rm', 'cat', 'head', 'sed', 'grep', 'wc', 'tr', 'cut']

export async function buildImages(
  columns: readonly Pick<Column, 'id'>[],
  environment: NodeJS.ProcessEnv | undefined,
): Promise<void> {
  const options = { env: environment, encoding: 'utf8' } as const
  const docker = (...args: string[]) => execFileSync('docker', args, options).trim()
  const programs = ['/bin/sh', ...tools.flatMap(name => findProgram(name) ?? [])]
  const needed = [process.execPath, ...programs].flatMap(program =>
    [...execFileSync('ldd', [program], options).matchAll(/(\/\S+) \(0x/g)].flatMap(([, path = '']) => path),
  )
  const sources = readdirSync(inside).map(name => join(inside, name))
  const archive = spawn('tar', [
    ...['--create', '--dereference', '--hard-dereference', '--absolute-names', '--owner=0', '--group=0'],
    ...['--transform', `flags=r;s,^${process.execPath}$,/usr/local/bin/node,`],
    ...['--transform', `flags=r;s,^${inside}/,/app/,`],
    ...[process.execPath, ...programs, ...new Set(needed), ...sources],
  ])
  const load = spawn('docker', ['import', '-', 'container-of:latest'], { env: environment })
  archive.stdout.pipe(load.stdin)
  const [code] = await once(load, 'exit')
  if (code !== 0) throw new Error(`the base image could not be made (${code})`)
  for (const column of columns) {
    const entry = JSON.stringify(['/usr/local/bin/node', `/app/${column.id}.process.ts`])
    const container = docker('create', '--network', 'none', 'container-of:latest', '/none')
    const changes = [`ENTRYPOINT ${entry}`, 'CMD []', 'ENV PATH=/usr/local/bin:/usr/bin:/bin']
    docker('commit', ...changes.flatMap(change => ['--change', change]), container, imageOf(column))
    docker('rm', container)
  }
}
