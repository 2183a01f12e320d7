import type {
  RequestPermissionRequest,
  RequestPermissionResponse,
  ToolCallUpdate,
} from '@agentclientprotocol/sdk'
import { openShellGate, type ShellDecision } from '../../shell/gate.ts'
import type { DriverContext } from '../types.ts'
import { quoted } from './problems.ts'

/** Answers an agent that asks whether it may do something. Nobody but the gate says yes. */
export type Permissions = (
  request: RequestPermissionRequest,
  signal: AbortSignal,
) => Promise<RequestPermissionResponse>

const mostAtOnce = 8

export function openPermissions({ start, environment, emit }: DriverContext): Permissions {
  const gate = openShellGate({ ...environment, events: start.events })
  let asking = 0

  const decide = async (call: ToolCallUpdate, signal: AbortSignal): Promise<ShellDecision> => {
    // The host judges what comes through the hatch by itself.
    if (isHatchTool(call)) return { allow: true, by: 'host' }
    if (asking >= mostAtOnce) return { allow: false, reason: `${asking} other questions are open` }
    asking++
    try {
      return await gate.mayRun(commandFor(call, environment.groupDirectory), signal)
    } finally {
      asking--
    }
  }
  return async ({ toolCall, options }, signal) => {
    const decision = await decide(toolCall, signal)
    if (signal.aborted) return { outcome: { outcome: 'cancelled' } }
    // Never for more than this one call: the next may be another.
    const kinds = decision.allow ? ['allow_once'] : ['reject_once', 'reject_always']
    const option = options.find(({ kind }) => kinds.includes(kind))
    const word = !decision.allow
      ? `Not allowed (${decision.reason})`
      : option
        ? 'Allowed'
        : 'Not allowed (the agent does not offer to do it only once)'
    emit({
      type: 'step',
      kind: 'notice',
      text: `${word}: ${commandFor(toolCall, environment.groupDirectory)}`,
    })
    return {
      outcome: option ? { outcome: 'selected', optionId: option.optionId } : { outcome: 'cancelled' },
    }
  }
}

/**
 * What the gate is asked about: the shell command, if the call is one and nothing else, otherwise the call in the form of
 * a command that no rule knows to be harmless.
 */
function commandFor({ kind, title, rawInput }: ToolCallUpdate, home: string): string {
  const command = mayBeCommand.has(kind ?? 'other') ? shellCommandIn(rawInput, home) : undefined
  if (command !== undefined) return command
  const input = rawInput == null ? [] : [JSON.stringify(rawInput)]
  return ['agent-tool', kind ?? 'other', quoted(title ?? 'without a title'), ...input].map(inShell).join(' ')
}

/** Codex takes `cat` for reading, and `rg` for a search. */
const mayBeCommand: ReadonlySet<string> = new Set(['execute', 'read', 'search', 'other'])

/**
 * What agents send beside a command and what changes nothing of what it does: of Claude, Gemini, opencode and others in the
 * first line, of Codex in the other ones, which are what it knows and proposes itself. Only `allow_once` is ever chosen.
 */
const harmlessKeys: ReadonlySet<string> = new Set([
  ...['description', 'timeout', 'timeout_ms', 'timeoutMs', 'run_in_background', 'is_background'],
  ...['call_id', 'turn_id', 'approval_id', 'reason', 'justification', 'parsed_cmd', 'available_decisions'],
  ...['proposed_execpolicy_amendment', 'proposed_network_policy_amendments'],
])
const commandKeys: ReadonlySet<string> = new Set(['command', 'cmd'])
const directoryKeys: ReadonlySet<string> = new Set(['cwd', 'workdir'])

/** undefined: it is none, or there is something beside it of which a shell command cannot tell */
function shellCommandIn(rawInput: unknown, home: string): string | undefined {
  if (typeof rawInput !== 'object' || rawInput === null || Array.isArray(rawInput)) return undefined
  const fields = Object.entries(rawInput).filter(([key, value]) => value !== null && !harmlessKeys.has(key))
  const [command, ...others] = fields.filter(([key]) => commandKeys.has(key))
  const [directory, ...more] = fields.filter(([key]) => directoryKeys.has(key))
  const known = [command, directory].filter(field => field !== undefined)
  if (!command || others.length > 0 || more.length > 0 || known.length < fields.length) return undefined
  const text = textOf(command[1])
  if (!directory || directory[1] === home || text === undefined) return text
  return typeof directory[1] === 'string' ? `cd ${inShell(directory[1])} && ${text}` : undefined
}

function textOf(command: unknown): string | undefined {
  if (typeof command === 'string') return command === '' ? undefined : command
  return Array.isArray(command) && command.length > 0 && command.every(word => typeof word === 'string')
    ? (shellTextIn(command) ?? command.map(inShell).join(' '))
    : undefined
}

/** `bash -lc TEXT`, as Codex starts its commands. */
function shellTextIn(words: readonly string[]): string | undefined {
  const [program = '', option = '', text, ...rest] = words
  return /(?:^|\/)(?:ba|da)?sh$/.test(program) && /^-l?c$/.test(option) && rest.length === 0
    ? text
    : undefined
}

const fieldOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null
    ? Object.entries(value).find(([key]) => key === name)?.[1]
    : undefined

const inShell = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`

/** How agents name a tool of the MCP server `hatchway`. What runs a command is none, whatever it is called. */
const hatchNames = [/^mcp__hatchway__\w+$/, /^hatchway[_/.:]\w+$/, /^\w+ \(hatchway MCP Server\)$/]

function isHatchTool({ kind, title, name, rawInput, _meta }: ToolCallUpdate): boolean {
  if (kind === 'execute' || [...commandKeys].some(key => fieldOf(rawInput, key) !== undefined)) return false
  const own = fieldOf(fieldOf(_meta, 'claudeCode'), 'toolName')
  const names = [title, name, own].filter(value => typeof value === 'string')
  return names.some(value => hatchNames.some(form => form.test(value)))
}
