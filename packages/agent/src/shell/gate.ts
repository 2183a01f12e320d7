import { judgeShell } from '@hatchway/protocol/shell'
import { reasonOf } from '@hatchway/spool'
import type { Hatch, Outcome } from '../mcp/hatch.ts'
import { readShellSettings } from './settings.ts'

/** Whether a shell command of the agent's may run, and who said so: the rules both sides share, or the host. */
export type ShellDecision = { allow: true; by: 'rules' | 'host' } | { allow: false; reason: string }

/**
 * Asked before each shell command. What is known to be harmless and offline passes at once and leaves no file; about
 * anything else the host is asked, which may ask a person. Only its clear yes is one: no answer, a late one, one that
 * cannot be read, any other word, and a failure of the gate itself all mean no (promise 9).
 */
export interface ShellGate {
  mayRun(command: string, signal?: AbortSignal): Promise<ShellDecision>
  /** no decision takes longer */
  longestMs: number
}

const never = new AbortController().signal

export function openShellGate(options: {
  variables: NodeJS.ProcessEnv
  ipc: string
  events: 'auto' | 'off'
}): ShellGate {
  const { decisionMs, answerMs, fileBytes } = readShellSettings(options.variables)
  let hatch: Promise<Hatch> | undefined
  const openHatch = async (): Promise<Hatch> => {
    // Loaded by the first command that needs it: most need none, and wait for the gate every time.
    const { createHatch } = await import('../mcp/hatch.ts')
    return createHatch({ ipc: options.ipc, timeoutMs: answerMs, fileBytes, events: options.events })
  }
  return {
    longestMs: answerMs + decisionMs,
    async mayRun(command, signal = never) {
      try {
        if (judgeShell(command).harmless) return { allow: true, by: 'rules' }
        hatch ??= openHatch()
        const asking = await hatch
        return decisionIn(await asking.request('check_shell', { command }, { signal, hostMs: decisionMs }))
      } catch (error) {
        return no(`the shell gate failed: ${reasonOf(error)}`)
      }
    },
  }
}

const no = (reason: string): ShellDecision => ({ allow: false, reason })

function decisionIn(outcome: Outcome): ShellDecision {
  switch (outcome.state) {
    case 'unsent':
      return no(`the host cannot be asked: ${outcome.error.message.replace(/^payload\./, 'the ')}`)
    case 'withdrawn':
      return no(`the host was asked and did not begin to decide: ${outcome.reason}`)
    case 'unknown':
      return no(`the host was asked, and its decision is not known: ${outcome.reason}`)
    case 'answered': {
      const { receipt } = outcome
      if (!receipt.ok) return no(`${receipt.error.message} (${receipt.error.code})`)
      return receipt.result.decision === 'allow'
        ? { allow: true, by: 'host' }
        : no('the host’s answer does not say that it is allowed')
    }
  }
}
