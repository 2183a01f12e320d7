import type { HookCallback, HookCallbackMatcher } from '@anthropic-ai/claude-agent-sdk'
import type { ShellDecision, ShellGate } from '../../shell/gate.ts'
import type { DriverContext } from '../types.ts'

/** Claude Code's tools that run shell commands, its subagents' too. Monitor can open a connection instead of running one. */
const tools = ['Bash', 'Monitor']

/** How much longer than the gate Claude Code waits, so that it hears the reason and not only that nobody answered. */
const marginMs = 30_000

/** Asks the gate before each of Claude's shell commands. */
export function shellHooks(gate: ShellGate, emit: DriverContext['emit']): HookCallbackMatcher {
  const decide = async (input: unknown, signal: AbortSignal): Promise<ShellDecision> => {
    const command = commandIn(input)
    return command === undefined
      ? { allow: false, reason: 'only shell commands are run here, and there is none in this call' }
      : gate.mayRun(command, signal)
  }
  const beforeShell: HookCallback = async (hook, _, { signal }) => {
    if (hook.hook_event_name !== 'PreToolUse') return {}
    const { tool_name: name, tool_input: input } = hook
    const decision = await decide(input, signal)
    const word = decision.allow ? 'Allowed' : `Not allowed (${decision.reason})`
    emit({ type: 'step', kind: 'notice', name, text: `${word}: ${commandIn(input) ?? ''}` })
    return {
      hookSpecificOutput: {
        hookEventName: 'PreToolUse',
        permissionDecision: decision.allow ? 'allow' : 'deny',
        ...(decision.allow ? {} : { permissionDecisionReason: `Not run: ${decision.reason}` }),
      },
    }
  }
  return {
    matcher: tools.join('|'),
    hooks: [beforeShell],
    onFailure: 'block',
    timeout: Math.ceil((gate.longestMs + marginMs) / 1000),
  }
}

const commandIn = (input: unknown): string | undefined =>
  typeof input === 'object' && input !== null && 'command' in input && typeof input.command === 'string'
    ? input.command
    : undefined
