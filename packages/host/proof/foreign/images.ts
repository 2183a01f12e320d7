import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import type { DialectName } from '@hatchway/protocol'

/**
 * Images such as the other projects build, without a network: the machine's own Node with the libraries it needs, and a
 * program that behaves as theirs does as the entry point. Nothing of ours is in them.
 */
export type Foreign = Exclude<DialectName, 'hatchway'>
export const imageOf = (dialect: Foreign) => `foreign-${dialect}:latest`

export async function buildImages(
  dialects: readonly Foreign[],
  environment: NodeJS.ProcessEnv | undefined,
): Promise<void> {
  const options = { env: environment, encoding: 'utf8' } as const
  const docker = (...args: string[]) => execFileSync('docker', args, options).trim()
  const libraries = [...execFileSync('ldd', [process.execPath], options).matchAll(/(\/\S+) \(0x/g)].flatMap(
    ([, path = '']) => path,
  )
  const programs = readdirSync(import.meta.dirname).map(name => `${import.meta.dirname}/${name}`)
  const archive = spawn('tar', [
    ...['--create', '--dereference', '--absolute-names', '--owner=0', '--group=0'],
    ...['--transform', `flags=r;s,^${process.execPath}$,/usr/local/bin/node,`],
    ...['--transform', `flags=r;s,^${import.meta.dirname}/,/app/,`],
    ...[process.execPath, ...libraries, ...programs],
  ])
  const load = spawn('docker', ['import', '-', 'foreign-base:latest'], { env: environment })
  archive.stdout.pipe(load.stdin)
  const [code] = await once(load, 'exit')
  if (code !== 0) throw new Error(`the base image could not be made (${code})`)
  for (const dialect of dialects) {
    const entry = JSON.stringify(['/usr/local/bin/node', `/app/${dialect}.ts`])
    const container = docker('create', '--network', 'none', 'foreign-base:latest', '/none')
    docker('commit', '--change', `ENTRYPOINT ${entry}`, '--change', 'CMD []', container, imageOf(dialect))
    docker('rm', container)
  }
}
