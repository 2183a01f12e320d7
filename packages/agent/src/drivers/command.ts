import { type Child, startChild } from '../run/child.ts'
import { lastWords } from '../run/script.ts'
import { located, shellsFirst } from '../shell/first.ts'
import { aboutThePlace, promptOf } from './prompt.ts'
import { takeTurns } from './turns.ts'
import type { Driver } from './types.ts'

const keep = 1_000_000
const placeholder = '{prompt}'
const stoppedBefore = 'A person stopped your last turn before it was finished.'

/**
 * Any command-line agent: started anew for each turn, in the group's folder, with the prompt in place of `{prompt}` in
 * its arguments, or else on its standard input. What it prints is the answer. The shells it finds by name ask first.
 */
export const command: Driver = async ({ start, environment, abort, emit }) => {
  const [program, ...args] = start.driver.command ?? []
  if (program === undefined) {
    throw new Error('The driver `command` needs a program: set agents.command in the configuration.')
  }
  const { variables } = environment
  const env = shellsFirst(variables)
  // Looked up without those shells: the operator's own program is not a command of the agent's.
  const path = located(program, variables) ?? program
  const inArguments = args.some(argument => argument.includes(placeholder))
  let child: Child | undefined
  let first = true
  let wasStopped = false

  return takeTurns(
    async (inputs, stopped) => {
      const before = wasStopped ? `${stoppedBefore}\n\n` : ''
      const prompt = `${aboutThePlace(start)}\n\n${before}${promptOf(inputs, start, first)}`
      first = false
      emit({ type: 'used', inputs: inputs.map(({ id }) => id) })
      child = startChild(
        path,
        args.map(argument => argument.replaceAll(placeholder, () => prompt)),
        {
          cwd: environment.groupDirectory,
          env,
          abort,
          keep,
          keepEnd: 'first',
          ...(inArguments ? {} : { input: prompt }),
        },
      )
      stopped.addEventListener('abort', child.kill)
      const exit = await child.exited
      child = undefined
      wasStopped = stopped.aborted
      if (wasStopped) return emit({ type: 'result', text: null, session_id: null })
      const fail = (message: string) => emit({ type: 'error', message, session_id: null })
      if (exit.failure !== undefined) return fail(`${program} could not be started: ${exit.failure}.`)
      if (exit.code !== 0) {
        const how = exit.signal === null ? `with code ${exit.code}` : `by ${exit.signal}`
        return fail(`${program} ended ${how}.${lastWords(exit.stderr)}`)
      }
      if (exit.stderr.trim() !== '') emit({ type: 'step', kind: 'notice', text: exit.stderr.trim() })
      if (exit.cut) {
        emit({ type: 'step', kind: 'notice', text: `${program} printed more than ${keep} characters.` })
      }
      emit({ type: 'result', text: exit.stdout.trim() || null, session_id: null })
    },
    () => child?.kill(),
  )
}
