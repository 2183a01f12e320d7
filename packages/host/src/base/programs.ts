import { spawn } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

export interface Answer {
  /** null: it was ended, could not be started, or took too long */
  code: number | null
  stdout: string
  stderr: string
  /** why there is no code, in words */
  failure?: string
}

export interface AskOptions {
  timeoutMs: number
  environment?: NodeJS.ProcessEnv
  input?: Buffer
}

const most = 1_048_576

/** Runs a program to its end and never longer than `timeoutMs`. Never throws: what went wrong is in the answer. */
export function ask(program: string, args: readonly string[], options: AskOptions): Promise<Answer> {
  return new Promise(resolve => {
    const child = spawn(program, args, {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: options.environment ?? process.env,
    })
    const output = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].setEncoding('utf8')
      child[name].on('data', (text: string) => {
        if (output[name].length < most) output[name] += text
      })
    }
    const finish = (code: number | null, failure?: string) => {
      clearTimeout(timer)
      resolve({ code, ...output, ...(failure === undefined ? {} : { failure }) })
    }
    const timer = setTimeout(() => {
      child.kill('SIGKILL')
      // A child of the child may hold the pipes open for ever; they are not waited for.
      child.stdout.destroy()
      child.stderr.destroy()
      finish(null, `\`${program}\` did not answer within ${options.timeoutMs / 1000} s`)
    }, options.timeoutMs)
    child.on('error', error => finish(null, error.message))
    child.on('close', (code, signal) =>
      finish(code, code === null ? `\`${program}\` was ended by ${signal}` : undefined),
    )
    // A program that ends before it has read everything is judged by its exit code.
    child.stdin.on('error', () => {})
    child.stdin.end(options.input)
  })
}

/** The last lines a program wrote, for a sentence that a person reads. */
export const lastWords = (text: string): string =>
  text
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '' && !line.startsWith('See '))
    .slice(-3)
    .join(' ')
    .slice(-500)

const places = () => [
  ...(process.env.PATH ?? '').split(delimiter),
  '/usr/local/bin',
  '/usr/bin',
  '/bin',
  '/usr/sbin',
]

export function findProgram(name: string): string | undefined {
  const paths = name.includes('/') ? [name] : places().map(place => join(place, name))
  return paths.find(path => {
    try {
      accessSync(path, constants.X_OK)
      return true
    } catch (error) {
      if (error instanceof Error && 'code' in error) return false
      throw error
    }
  })
}
