import type { ToolCallUpdate } from '@agentclientprotocol/sdk'
import { expect, onTestFinished, test } from 'vitest'
import { playHost, temporaryFolder } from '../../mcp/testing.ts'
import { readEnvironment } from '../../run/environment.ts'
import { documentOf } from '../../run/testing.ts'
import { openPermissions } from './permission.ts'

const options = [
  { optionId: 'yes', name: 'Yes', kind: 'allow_once' as const },
  { optionId: 'no', name: 'No', kind: 'reject_once' as const },
]

/** Answers with what the host is asked about a call, to which it says no, or with what is decided without it. */
function begin() {
  const host = playHost()
  const home = temporaryFolder()
  const abort = new AbortController()
  onTestFinished(() => abort.abort())
  const ask = openPermissions({
    start: documentOf({ driver: { name: 'acp', command: ['agent'] } }),
    environment: readEnvironment({ HATCHWAY_IPC: host.ipc, HATCHWAY_GROUP_DIR: home }),
    abort: abort.signal,
    emit: () => {},
  })
  // One that nobody has answered is for the next question.
  let next: ReturnType<typeof host.take> | undefined
  const asked = async (call: Omit<ToolCallUpdate, 'toolCallId'>): Promise<unknown> => {
    const request = { sessionId: 's', toolCall: { toolCallId: 't', ...call }, options }
    const decided = ask(request, abort.signal)
    next ??= host.take()
    const question = await Promise.race([next, decided])
    if ('outcome' in question) return question.outcome
    next = undefined
    host.refuse(question.id, 'denied', 'No.')
    expect(await decided).toEqual({ outcome: { outcome: 'selected', optionId: 'no' } })
    return question.payload
  }
  return { home, asked }
}

const allowed = { outcome: 'selected', optionId: 'yes' }
const asCall = (kind: string, title: string, input: object) => ({
  command: `'agent-tool' '${kind}' '${title}' '${JSON.stringify(input)}'`,
})

test('a command is asked about as one if there is nothing beside it that changes what it does', async () => {
  const { home, asked } = begin()
  for (const rawInput of [
    { command: 'ls', description: 'List', timeout: 1000, run_in_background: false },
    { cmd: 'ls' },
    { command: ['bash', '-lc', 'ls'], cwd: home, reason: null, parsed_cmd: [{ type: 'list_files' }] },
    { command: ['sh', '-c', 'ls'], workdir: '/srv', env: null },
  ])
    expect(await asked({ kind: 'execute', title: 'List', rawInput })).toEqual(allowed)
  // Codex says what a command is for.
  expect(await asked({ kind: 'search', title: 'List', rawInput: { command: 'ls' } })).toEqual(allowed)
  const rawInput = { command: 'curl a', cwd: "/srv/it's" }
  expect(await asked({ kind: 'execute', title: 'Get', rawInput })).toEqual({
    command: String.raw`cd '/srv/it'\''s' && curl a`,
  })
})

test.each([
  ['execute', { command: 'ls', env: { LD_PRELOAD: '/tmp/a.so' } }],
  ['execute', { command: 'ls', args: ['-la'] }],
  ['execute', { command: 'ls', cmd: 'rm -rf .' }],
  ['execute', { command: 'ls', cwd: '/srv', workdir: '/etc' }],
  ['execute', { command: 'ls', cwd: ['/srv'] }],
  ['execute', { command: 'ls', dangerouslyDisableSandbox: true }],
  ['execute', { command: '', cmd: ['ls', 1] }],
  ['edit', { command: 'create', path: 'a.txt', file_text: 'b' }],
  ['edit', { command: 'ls' }],
  ['other', { command: 'view', path: 'a.txt' }],
])('all of a call is asked about that is more or other than a command: %s %j', async (kind, rawInput) => {
  const { asked } = begin()
  const call = { kind: kind as 'execute', title: 'Do it', rawInput }
  expect(await asked(call)).toEqual(asCall(kind, 'Do it', rawInput))
})

test.each([{ command: 'rm -rf .' }, { cmd: 'rm -rf .' }])(
  'what has a command is no tool of the hatch, whatever it is called: %j',
  async rawInput => {
    const { asked } = begin()
    const call = { kind: 'other' as const, title: 'hatchway_send_message', rawInput }
    expect(await asked(call)).toEqual({ command: 'rm -rf .' })
    expect(await asked({ ...call, rawInput: { text: 'hello' } })).toEqual(allowed)
  },
)
