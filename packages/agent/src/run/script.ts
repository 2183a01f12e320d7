import { z } from 'zod'
import { startChild } from './child.ts'

/** What a task's script decided: whether to wake the agent, and what to tell it. */
export interface ScriptOutcome {
  wake: boolean
  data?: unknown
  error?: string
}

const decisionSchema = z.object({ wakeAgent: z.boolean(), data: z.unknown().optional() })
const keep = 65_536

/** Runs a task's script; its last line with anything on it decides. Whatever goes wrong, nobody is woken (promise 9). */
export async function runScript(
  script: string,
  options: { cwd: string; env: NodeJS.ProcessEnv; timeoutMs: number; abort: AbortSignal },
): Promise<ScriptOutcome> {
  const exit = await startChild('sh', ['-c', script], { ...options, keep, keepEnd: 'last' }).exited
  if (exit.failure !== undefined) return failed(`The script could not be started: ${exit.failure}.`)
  if (exit.timedOut) return failed(`The script took longer than ${options.timeoutMs / 1000} s and was ended.`)
  if (exit.code !== 0) {
    const how = exit.signal === null ? `with code ${exit.code}` : `by ${exit.signal}`
    return failed(`The script ended ${how}.${lastWords(exit.stderr)}`)
  }
  const line = exit.stdout.trimEnd().split('\n').at(-1)?.trim() ?? ''
  return decide(line)
}

function decide(line: string): ScriptOutcome {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    return failed('The script’s last line is not JSON such as {"wakeAgent":true}.')
  }
  const { data: decision } = decisionSchema.safeParse(value)
  if (!decision) return failed('The script’s last line lacks "wakeAgent": true or false.')
  return decision.data === undefined
    ? { wake: decision.wakeAgent }
    : { wake: decision.wakeAgent, data: decision.data }
}

const failed = (error: string): ScriptOutcome => ({ wake: false, error })

/** The end of what a program complained of, for the one who has to mend it. */
export function lastWords(stderr: string): string {
  const words = stderr.trim().slice(-2000)
  return words === '' ? '' : ` It said: ${words}`
}
