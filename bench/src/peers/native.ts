import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { startPiped } from '../children.ts'
import type { Counting } from '../mailbox.ts'
import { stampLog } from '../stamps.ts'
import { findProgram } from './programs.ts'

const source = fileURLToPath(new URL('./native.c', import.meta.url))

/** The program in C, compiled into `base`; or why there is none. */
export const compileNative = async (base: string): Promise<{ program: string } | { missing: string }> => {
  const compiler = findProgram('gcc') ?? findProgram('cc')
  if (compiler === undefined) return { missing: 'gcc is not installed: the program in C cannot be made' }
  const program = join(base, 'native')
  try {
    await promisify(execFile)(compiler, ['-O2', '-o', program, source])
    return { program }
  } catch (error) {
    return { missing: `the program in C cannot be made: ${error instanceof Error ? error.message : error}` }
  }
}

interface Places {
  directories: readonly string[]
  /** where files go instead of being removed */
  done?: string | undefined
  ledger?: string | undefined
  /** names: told one by one; count: only how many */
  record?: 'names' | 'count'
}

/** Resolves when it watches; what lies there already is handled after that. */
export const startNative = async (program: string, places: Places): Promise<Counting> => {
  const { directories, done, ledger, record = 'names' } = places
  const log = stampLog()
  let files = 0
  let at = 0n
  const ready = Promise.withResolvers<void>()
  const options = [
    ...(done === undefined ? [] : ['-d', done]),
    ...(ledger === undefined ? [] : ['-l', ledger]),
    ...(record === 'count' ? ['-c'] : []),
  ]
  const { pid, say, gone, end, kill } = startPiped(program, options, line => {
    if (line === 'ready') return ready.resolve()
    const [name = '', time = ''] = line.split(' ')
    at = BigInt(time)
    if (record === 'count') {
      files = Number(name)
    } else {
      files++
      log.add(name, at)
    }
  })
  gone.then(ready.reject)
  say(`${directories.join('\n')}\n\n`)
  await ready.promise
  return { pid, take: async () => log.take(), progress: async () => ({ files, at }), end, kill }
}
