import type * as Library from '@modelcontextprotocol/client'
import type { Transport } from '@modelcontextprotocol/client'
import { within } from '../../base/pause.ts'
import { environmentFor, headersFor } from './credentials.ts'
import { Misconfigured, shortened } from './failure.ts'
import { httpTransport } from './http.ts'
import { startProgram } from './program.ts'
import type { LentServer } from './settings.ts'
import { stdioTransport } from './stdio.ts'

/** A way to a server and back: a program of ours, or an address. */
export interface Line {
  transport: Transport
  /** how it ended, if it did so by itself; continues "the server …" */
  ended(): Promise<string | undefined>
  /** for people: what it said on standard error, or wrote where only MCP belongs */
  lastWords(): string
  end(how: 'politely' | 'at once'): Promise<void>
}

export interface LineOptions {
  library: typeof Library
  settings: LentServer
  environment: NodeJS.ProcessEnv
  graceMs: number
  /** the largest message */
  limitBytes: number
  /** a message is too large, and nobody can say what it answers */
  flooded(): void
}

const exitMs = 250

export async function openLine(options: LineOptions): Promise<Line> {
  return options.settings.url === undefined
    ? lineToProgram(options)
    : lineToAddress(options, options.settings.url)
}

async function lineToProgram({ library, settings, environment, ...options }: LineOptions): Promise<Line> {
  const given = environmentFor(settings, environment)
  if ('problem' in given) throw new Misconfigured(given.problem)
  const [command = '', ...args] = [settings.command ?? [], settings.args ?? []].flat()
  const program = await startProgram({
    command,
    args,
    env: given.values,
    cwd: settings.cwd,
    graceMs: options.graceMs,
  })
  let rubbish = ''
  const transport = stdioTransport(program, {
    limitBytes: options.limitBytes,
    parse: library.deserializeMessage,
    rubbish(line) {
      rubbish = shortened(line.slice(0, 1000)).slice(0, 200)
    },
    flooded: options.flooded,
  })
  return {
    transport,
    async ended() {
      // That its pipe is closed is often known before that it has ended.
      await within(exitMs, program.ended)
      return program.hasEnded() ? program.ended : undefined
    },
    lastWords: () =>
      [
        ...(rubbish === '' ? [] : [`On standard output, where only MCP belongs, it wrote: ${rubbish}`]),
        ...(program.lastWords() === '' ? [] : [`Its last words: ${program.lastWords()}`]),
      ].join('\n'),
    async end(how) {
      await transport.close()
      await program.end(how)
    },
  }
}

async function lineToAddress(
  { library, settings, environment, ...options }: LineOptions,
  url: string,
): Promise<Line> {
  const given = headersFor(settings, environment)
  if ('problem' in given) throw new Misconfigured(given.problem)
  const transport = httpTransport(library, {
    url,
    headers: given.values,
    limitBytes: options.limitBytes,
    flooded: options.flooded,
  })
  return {
    transport,
    ended: async () => undefined,
    lastWords: () => '',
    async end(how) {
      // It may be gone; then its session is as well.
      if (how === 'politely')
        await within(
          options.graceMs,
          transport.terminateSession().catch(() => {}),
        )
      await transport.close()
    },
  }
}
