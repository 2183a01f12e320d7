import { z } from 'zod'
import { startChild } from '../../../run/child.ts'
import type { RunEnvironment } from '../../../run/environment.ts'
import { located } from '../../../shell/first.ts'
import { openShellGate } from '../../../shell/gate.ts'
import type { DriverContext } from '../../types.ts'
import { type AssistantTool, ownTool, refused, said } from './types.ts'

const usualSeconds = 120
const mostSeconds = 1200

/** Shell commands, each of which the gate is asked about before it runs. */
export function shellTool({ start, environment, emit }: DriverContext, longest: number): AssistantTool {
  const gate = openShellGate({ ...environment, events: start.events })
  const shell = located('bash', environment.variables) ?? 'sh'
  const name = 'shell'
  return ownTool({
    name,
    description: `Runs a shell command in your folder and gives its output. Programs it leaves in the background are ended. Limit: ${usualSeconds} s.`,
    input: z.strictObject({
      command: z.string().min(1),
      timeout_s: z.int().min(1).max(mostSeconds).optional(),
    }),
    async call({ command, timeout_s: seconds = usualSeconds }, signal) {
      const decision = await gate.mayRun(command, signal)
      if (signal.aborted) return refused(`Not run: ${signal.reason}`)
      const word = decision.allow ? 'Allowed' : `Not allowed (${decision.reason})`
      emit({ type: 'step', kind: 'notice', name, text: `${word}: ${command}` })
      if (!decision.allow) return refused(`Not run: ${decision.reason}`)
      return run(shell, command, { environment, timezone: start.timezone, seconds, signal, longest })
    },
  })
}

async function run(
  shell: string,
  command: string,
  options: {
    environment: RunEnvironment
    timezone: string
    seconds: number
    signal: AbortSignal
    longest: number
  },
) {
  const { environment, timezone, seconds, signal, longest } = options
  const child = startChild(shell, ['-c', command], {
    cwd: environment.groupDirectory,
    env: { ...environment.variables, TZ: timezone },
    abort: signal,
    timeoutMs: seconds * 1000,
    keep: longest,
    keepEnd: 'last',
  })
  const exit = await child.exited
  if (exit.failure !== undefined) return refused(`The shell cannot be started: ${exit.failure}.`)
  const how = signal.aborted
    ? `It was ended. ${signal.reason}`
    : exit.timedOut
      ? `It was ended after ${seconds} s.`
      : exit.signal !== null
        ? `It was ended by ${exit.signal}.`
        : exit.code === 0
          ? ''
          : `Exit code ${exit.code}.`
  const out = exit.stdout.trimEnd()
  const complaint = exit.stderr.trimEnd().slice(-Math.floor(longest / 4))
  const text = [
    ...(out === '' ? [] : [out.length >= longest ? `(only the end) …${out}` : out]),
    ...(complaint === '' ? [] : [`Standard error:\n${complaint}`]),
    ...(how === '' ? [] : [how]),
  ].join('\n')
  return how === '' ? said(text || '(no output)') : refused(text)
}
