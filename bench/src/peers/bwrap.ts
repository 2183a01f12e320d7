import { spawn } from 'node:child_process'
import type { Absent, Contender } from '../contenders.ts'
import { findProgram } from './programs.ts'

export const bwrapName = 'bwrap node -e'

/** in new namespaces, with the whole machine read-only: less than any sandbox for agents has to do */
const args = [
  ...['--unshare-all', '--die-with-parent', '--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev'],
  ...['--', process.execPath, '-e', 'process.stdout.write("up")'],
]

const begin = (program: string) =>
  new Promise<number>((resolve, reject) => {
    const start = process.hrtime.bigint()
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    let up = 0
    child.stdout.once('data', () => {
      up = Number(process.hrtime.bigint() - start) / 1000
    })
    child.once('error', reject)
    child.once('close', code => (up > 0 ? resolve(up) : reject(new Error(`bwrap ended with ${code}`))))
  })

/** What a cold start cannot be faster than: Node in bubblewrap that says one word. */
export const bwrapContender = (): Contender | Absent => {
  const program = findProgram('bwrap')
  if (program === undefined) return { name: bwrapName, missing: 'bwrap is not installed' }
  return {
    name: bwrapName,
    async block(count) {
      const samples: number[] = []
      for (let index = 0; index < count; index++) samples.push(await begin(program))
      return samples
    },
    end: async () => {},
  }
}
