import { isUtf8 } from 'node:buffer'
import { existsSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { isatty } from 'node:tty'
import { openShellGate, type ShellDecision } from './gate.ts'
import { commandOf, type Invocation, readInvocation } from './invocation.ts'
import { keepInput, readInput, readScript, type ScriptText } from './script.ts'

/**
 * What the shells in /opt/hatchway/bin ask before they become the real one: whether a shell that is called like this
 * may run. Standard output gets the one word `allow`, or `allow` and where the script lies that was read from standard
 * input; whatever else happens, the shell must not run. The real shell is not started from here: it would inherit
 * Node's ignored signals, lose the caller's open files, and leave Node waiting beside it.
 */
export interface CheckOptions {
  variables: NodeJS.ProcessEnv
  ipc: string
}

/** how long a script on standard input may take to come to its end */
const inputMs = 30_000
/** The exit codes shells have for it. */
const notAllowed = 126
const notFound = 127

export async function checkShell(
  [name = 'sh', ...args]: readonly string[],
  { variables, ipc }: CheckOptions,
): Promise<number> {
  const refuse = (reason: string, code = notAllowed): number => {
    writeSync(2, `${name}: not run: ${reason}\n`)
    return code
  }
  // Nothing runs; and nobody who asks for it gives it anything to read.
  if (args.length === 1 && (args[0] === '--version' || args[0] === '--help')) return allow()
  // Node shows bytes that are no text as something else than the shell will get.
  if (args.some(word => word.includes('\ufffd')) && !isUtf8(readFileSync('/proc/self/cmdline')))
    return refuse('there are bytes in the call that are no text in UTF-8')

  const invocation = readInvocation(args)
  const script = await textOf(invocation)
  if ('problem' in script) {
    const what = invocation.source === 'file' ? invocation.operands[0] : 'the script on standard input'
    return refuse(
      `what it would do has to be known first. Of ${what}, ${script.problem}`,
      script.missing ? notFound : notAllowed,
    )
  }
  const { text } = script
  const hasProfile = ownProfiles.some(file => existsSync(join(variables.HOME ?? '/', file)))
  const decision = await decide(commandOf({ name, invocation, text, hasProfile, variables }), variables, ipc)
  if (!decision.allow) return refuse(decision.reason)
  return allow(invocation.source === 'input' && text !== '' ? keepInput(text) : undefined)
}

const ownProfiles = ['.bash_profile', '.bash_login', '.profile']

function allow(input?: string): number {
  writeSync(1, input === undefined ? 'allow\n' : `allow ${input}\n`)
  return 0
}

async function textOf({ source, operands, interactive }: Invocation): Promise<ScriptText> {
  if (source === 'text') return { text: operands[0] ?? '' }
  if (source === 'file') return readScript(operands[0] ?? '')
  return interactive || isatty(0)
    ? { problem: 'nothing is known before somebody types it. Use -c' }
    : await readInput(process.stdin, inputMs)
}

/** Takes the question back when nobody waits for the answer any longer. */
async function decide(command: string, variables: NodeJS.ProcessEnv, ipc: string): Promise<ShellDecision> {
  const ending = new AbortController()
  const end = () => ending.abort()
  const signals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const
  for (const signal of signals) process.on(signal, end)
  const caller = process.ppid
  const watch = setInterval(() => process.ppid !== caller && end(), 250)
  try {
    const gate = openShellGate({ variables, ipc, events: 'off' })
    return await gate.mayRun(command, ending.signal)
  } finally {
    clearInterval(watch)
    for (const signal of signals) process.off(signal, end)
  }
}
