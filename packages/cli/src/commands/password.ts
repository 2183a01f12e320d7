import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import type { Command } from 'commander'
import { exitCodes, Failure } from '../failure.ts'
import { printLine } from '../output.ts'

const shortest = 8

export function addPassword(program: Command): void {
  program
    .command('password')
    .description(
      'make the entry for web.users of a password, which is asked for, or read from standard input',
    )
    .addHelpText(
      'after',
      '\nExample:\n  $ npx hatchway password\n  $ printf \'%s\' "$PASSWORD" | npx hatchway password',
    )
    .action(async () => {
      const password = process.stdin.isTTY ? await asked() : (await text(process.stdin)).replace(/\r?\n$/, '')
      if (password.length < shortest)
        throw new Failure(`A password needs at least ${shortest} characters.`, exitCodes.refused)
      const { hashPassword } = await import('@hatchway/host')
      await printLine(await hashPassword(password))
    })
}

/** Nothing of it is shown, and the questions are not part of the output. */
async function asked(): Promise<string> {
  const nowhere = new Writable({ write: (_part, _encoding, done) => done() })
  const lines = createInterface({ input: process.stdin, output: nowhere, terminal: true, historySize: 0 })
  const ended = new AbortController()
  lines.once('SIGINT', () => ended.abort())
  lines.once('close', () => ended.abort())
  const unseen = async (question: string) => {
    process.stderr.write(question)
    try {
      return await lines.question('', { signal: ended.signal })
    } finally {
      process.stderr.write('\n')
    }
  }
  try {
    const first = await unseen('Password: ')
    if (first === (await unseen('Once more: '))) return first
  } catch (error) {
    if (ended.signal.aborted) throw new Failure('No password was given.', exitCodes.usage)
    throw error
  } finally {
    lines.close()
  }
  throw new Failure('They are not the same.', exitCodes.refused)
}
