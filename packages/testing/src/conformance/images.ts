import { execFileSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { importPrograms } from '../sandboxes/base-image.ts'
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
  const docker = (...args: string[]) =>
    execFileSync('docker', args, { env: environment, encoding: 'utf8' }).trim()
  const sources = readdirSync(inside).map(name => join(inside, name))
  await importPrograms('container-of:latest', tools, environment, {
    files: sources,
    from: inside,
    to: '/app',
  })
  for (const column of columns) {
    const entry = JSON.stringify(['/usr/local/bin/node', `/app/${column.id}.process.ts`])
    const container = docker('create', '--network', 'none', 'container-of:latest', '/none')
    const changes = [`ENTRYPOINT ${entry}`, 'CMD []', 'ENV PATH=/usr/local/bin:/usr/bin:/bin']
    docker('commit', ...changes.flatMap(change => ['--change', change]), container, imageOf(column))
    docker('rm', container)
  }
}
