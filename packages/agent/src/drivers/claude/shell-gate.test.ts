import type { HookInput } from '@anthropic-ai/claude-agent-sdk'
import { expect, test } from 'vitest'
import { jsonFiles, playHost } from '../../mcp/testing.ts'
import { openShellGate } from '../../shell/gate.ts'
import type { DriverContext } from '../types.ts'
import { shellHooks } from './shell-gate.ts'

/** The hook as Claude Code calls it; the real program is asked in packages/testing/proofs/claude-guard.test.ts. */
function open(variables: NodeJS.ProcessEnv = {}) {
  const host = playHost()
  const steps: Parameters<DriverContext['emit']>[0][] = []
  const gate = openShellGate({ ipc: host.ipc, variables, events: 'auto' })
  const matcher = shellHooks(gate, event => steps.push(event))
  const call = async (tool_name: string, tool_input: unknown, signal = new AbortController().signal) => {
    const about = { session_id: 's', transcript_path: '', cwd: '/', tool_use_id: 't' }
    const input: HookInput = { ...about, hook_event_name: 'PreToolUse', tool_name, tool_input }
    const output = await matcher.hooks[0]?.(input, 't', { signal })
    return output && 'hookSpecificOutput' in output ? output.hookSpecificOutput : output
  }
  return { host, gate, matcher, steps, call }
}

const allow = { hookEventName: 'PreToolUse', permissionDecision: 'allow' }
const deny = (reason: unknown) => ({
  hookEventName: 'PreToolUse',
  permissionDecision: 'deny',
  permissionDecisionReason: reason,
})

test('a harmless command is allowed without a question, and told of', async () => {
  const { call, host, steps } = open()
  expect(await call('Bash', { command: 'ls', timeout: 5 })).toEqual(allow)
  expect(steps).toEqual([{ type: 'step', kind: 'notice', name: 'Bash', text: 'Allowed: ls' }])
  expect(jsonFiles(host.tasks)).toEqual([])
})

test('the host’s yes allows, its no is passed on with the reason, whichever tool asks', async () => {
  const { call, host, steps } = open()
  for (const tool of ['Bash', 'Monitor']) {
    const allowed = call(tool, { command: 'curl a' })
    host.answer((await host.take()).id, { decision: 'allow' })
    expect(await allowed).toEqual(allow)
    const denied = call(tool, { command: 'curl b' })
    host.refuse((await host.take()).id, 'denied', 'Ann said no.')
    expect(await denied).toEqual(deny('Not run: Ann said no. (denied)'))
    expect(steps.at(-1)).toMatchObject({ name: tool, text: 'Not allowed (Ann said no. (denied)): curl b' })
  }
})

test('a call without a command is no harmless one', async () => {
  const { call, host } = open()
  for (const input of [
    { ws: { url: 'wss://example.com' } },
    {},
    { command: ['ls'] },
    { command: null },
    'ls',
    null,
    undefined,
  ])
    expect(await call('Monitor', input)).toEqual(deny(expect.stringContaining('Not run')))
  expect(jsonFiles(host.tasks)).toEqual([])
})

test('a session that ends takes its question back', async () => {
  const { call, host } = open()
  const controller = new AbortController()
  const decision = call('Bash', { command: 'curl x' }, controller.signal)
  await host.take()
  controller.abort()
  expect(await decision).toEqual(deny(expect.stringContaining('cancelled')))
})

test('Claude Code waits longer than the gate, and a hook that fails blocks', () => {
  for (const variables of [{}, { HATCHWAY_SHELL_TIMEOUT_MS: '86430000' }]) {
    const { matcher, gate } = open(variables)
    expect((matcher.timeout ?? 0) * 1000).toBeGreaterThan(gate.longestMs)
    expect(matcher).toMatchObject({ matcher: 'Bash|Monitor', onFailure: 'block' })
  }
})
