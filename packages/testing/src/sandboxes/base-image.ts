import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { findProgram } from '../../../host/src/base/programs.ts'

/** An image without a network: this machine's Node, a shell and these programs, with the libraries they need, and more files. */
export async function importPrograms(
  image: string,
  names: readonly string[],
  environment: NodeJS.ProcessEnv | undefined,
  more?: { files: readonly string[]; from: string; to: string },
): Promise<void> {
  const programs = ['/bin/sh', ...names.flatMap(name => findProgram(name) ?? [])]
  // One that needs none makes ldd fail.
  const librariesOf = (program: string) => spawnSync('ldd', [program], { encoding: 'utf8' }).stdout
  const needed = [process.execPath, ...programs].flatMap(program =>
    [...librariesOf(program).matchAll(/(\/\S+) \(0x/g)].map(([, path = '']) => path),
  )
  const archive = spawn('tar', [
    ...['--create', '--dereference', '--hard-dereference', '--absolute-names', '--owner=0', '--group=0'],
    ...['--transform', `flags=r;s,^${process.execPath}$,/usr/local/bin/node,`],
    ...(more ? ['--transform', `flags=r;s,^${more.from}/,${more.to}/,`] : []),
    ...[process.execPath, ...programs, ...new Set(needed), ...(more?.files ?? []), '--no-recursion', '/tmp'],
  ])
  const load = spawn('docker', ['import', '-', image], { env: environment })
  archive.stdout.pipe(load.stdin)
  const [code] = await once(load, 'exit')
  if (code !== 0) throw new Error(`the base image could not be made (${code})`)
}
