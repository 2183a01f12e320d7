import { readFileSync, statSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Options, Query, SDKMessage } from '@anthropic-ai/claude-agent-sdk'
import type { RunInput } from '@hatchway/protocol'
import { reasonOf } from '@hatchway/spool'
import type { RunEnvironment } from '../../run/environment.ts'
import { lastWords } from '../../run/script.ts'
import { openShellGate } from '../../shell/gate.ts'
import { aboutThePlace, promptOf } from '../prompt.ts'
import type { Driver, DriverContext } from '../types.ts'
import { createInputStream } from './input-stream.ts'
import { shellHooks } from './shell-gate.ts'
import { stepsOf, wordsOf } from './steps.ts'

/**
 * Claude through its Agent SDK: one conversation for the whole run, spoken to as it works. A message counts as used when
 * Claude names it as one its turn has read, not when it was handed over: what it had no time for is the next run's.
 */
export const claude: Driver = async context => {
  const { start, environment, emit } = context
  const { query } = await loadSdk(environment)
  const options = optionsFor(context)
  const input = createInputStream()
  const ending = new AbortController()
  const toolNames = new Map<string, string>()
  let sessionId = start.session_id
  let first = true
  let finishing = false
  /** the turn it is at is to end without an answer */
  let isStopped = false
  let conversation: Query | undefined
  /** the end of what its program wrote to standard error */
  let complaints = ''

  const used = (uuids: readonly string[] = []) => {
    const ids = uuids.flatMap(uuid => input.read(uuid))
    if (ids.length > 0) emit({ type: 'used', inputs: ids })
  }
  const hear = (message: SDKMessage) => {
    if ('session_id' in message && message.session_id) sessionId = message.session_id
    if (message.type === 'assistant' || message.type === 'result') used(message.user_message_uuids)
    for (const step of stepsOf(message, toolNames)) emit(step)
    const words = wordsOf(message)
    if (words !== '' && !isStopped) emit({ type: 'delta', text: words })
    if (message.type !== 'result') return
    if (isStopped) {
      isStopped = false
      return emit({ type: 'result', text: null, session_id: sessionId })
    }
    if (message.subtype === 'success' && !message.is_error) {
      emit({ type: 'result', text: message.result.trim() || null, session_id: sessionId })
      return
    }
    const why = message.subtype === 'success' ? message.result : message.errors.join('; ')
    fail(why || `Claude ended its turn with ${message.subtype}.`)
  }
  const fail = (message: string) => emit({ type: 'error', message, session_id: sessionId })

  /** Speaks with Claude until it ends; false: the one to go on with could not be begun with. */
  const converse = async (resume: string | null): Promise<boolean> => {
    let begun = false
    let failed = false
    try {
      conversation = query({
        prompt: input.messages(),
        options: {
          ...options,
          ...(resume === null ? {} : { resume }),
          abortController: ending,
          stderr: text => {
            complaints = (complaints + text).slice(-2000)
            process.stderr.write(text)
          },
        },
      })
      for await (const message of conversation) {
        begun ||= message.type === 'system' && message.subtype === 'init'
        failed = message.type === 'result' && message.is_error
        if (failed && !begun && resume !== null) return false
        hear(message)
      }
      if (!finishing) fail(ownEnd(complaints))
    } catch (error) {
      if (!ending.signal.aborted && !begun && resume !== null) return false
      // After a turn that failed the SDK throws the same failure once more.
      if (!ending.signal.aborted && !failed) fail(ownEnd(complaints, error))
    }
    return true
  }
  const converseOrBeginAnew = async () => {
    if (await converse(start.session_id)) return
    emit({
      type: 'step',
      kind: 'notice',
      text: `The earlier conversation cannot be gone on with; a new one begins.${lastWords(complaints)}`,
    })
    complaints = ''
    await converse(null)
  }
  const ended = converseOrBeginAnew()

  return {
    feed(inputs: readonly RunInput[]) {
      if (finishing) return
      input.push(
        promptOf(inputs, start, first),
        inputs.map(({ id }) => id),
      )
      first = false
    },
    stopTurn() {
      isStopped = true
      input.drop()
      // Where it cannot be interrupted any more it has ended, which is told elsewhere.
      conversation?.interrupt().catch(error => console.error(`Claude could not be interrupted: ${error}`))
    },
    async finish() {
      finishing = true
      input.end()
      await ended
    },
    async close() {
      finishing = true
      input.end()
      ending.abort()
      await ended
    },
    ended,
  }
}

function ownEnd(complaints: string, error?: unknown): string {
  const why = error === undefined ? '' : `: ${reasonOf(error)}`
  return `Claude has ended by itself${why}.${lastWords(complaints)}`
}

/** Outside the bundle: its program is hundreds of megabytes, which the host mounts where it is wanted. */
async function loadSdk({
  variables,
}: RunEnvironment): Promise<typeof import('@anthropic-ai/claude-agent-sdk')> {
  const wanted = variables.HATCHWAY_CLAUDE_SDK || '@anthropic-ai/claude-agent-sdk'
  try {
    return await import(isAbsolute(wanted) ? pathToFileURL(moduleIn(wanted)).href : wanted)
  } catch (error) {
    throw new Error(
      `The Claude Agent SDK cannot be loaded from ${wanted}: ${reasonOf(error)}. Install it with: npx hatchway agents add claude, or set HATCHWAY_CLAUDE_SDK to where it is.`,
    )
  }
}

const moduleIn = (path: string): string =>
  statSync(path, { throwIfNoEntry: false })?.isDirectory() ? join(path, 'sdk.mjs') : path

/** Tools that need a terminal, a network, or do what the hatch does, without the host knowing. */
const unfit = [
  'AskUserQuestion',
  'CronCreate',
  'CronDelete',
  'CronList',
  'EnterPlanMode',
  'ExitPlanMode',
  'EnterWorktree',
  'ExitWorktree',
  'PowerShell',
  'PushNotification',
  'RemoteTrigger',
  'ReportFindings',
  'ScheduleWakeup',
  'SendFeedback',
  'WebFetch',
  'WebSearch',
  'Workflow',
]

function optionsFor({ start, environment, emit }: DriverContext): Options {
  const { mcpServer } = environment
  const program = environment.variables.HATCHWAY_CLAUDE_BIN
  const gate = openShellGate({ ...environment, events: start.events })
  return {
    cwd: environment.groupDirectory,
    ...(start.model === null ? {} : { model: start.model }),
    ...(program ? { pathToClaudeCodeExecutable: program } : {}),
    mcpServers: {
      hatchway: {
        type: 'stdio',
        command: mcpServer.command,
        args: mcpServer.args,
        env: { ...mcpServer.env, TZ: start.timezone, HATCHWAY_EVENTS: start.events },
        // Else its tools hide behind a search that the model does not think of.
        alwaysLoad: true,
      },
    },
    strictMcpConfig: true,
    includePartialMessages: true,
    // What the agent could write into its own folder must not loosen what it runs under.
    settingSources: [],
    systemPrompt: { type: 'preset', preset: 'claude_code', append: aboutClaude(start, environment) },
    // The sandbox is the limit; inside it nobody is there to be asked.
    permissionMode: 'bypassPermissions',
    allowDangerouslySkipPermissions: true,
    disallowedTools: unfit,
    // What people write is text: `@file` and `/command` in it mean nothing.
    verbatimPrompts: true,
    hooks: { PreToolUse: [shellHooks(gate, emit)] },
    env: {
      ...environment.variables,
      TZ: start.timezone,
      IS_SANDBOX: '1',
      DISABLE_AUTOUPDATER: '1',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    },
  }
}

function aboutClaude(start: DriverContext['start'], environment: RunEnvironment): string {
  const notes = [environment.globalDirectory, environment.groupDirectory]
    .map(directory => notesIn(join(directory, 'CLAUDE.md')))
    .filter(text => text !== '')
  return [aboutThePlace(start), ...notes].join('\n\n')
}

function notesIn(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return ''
    throw error
  }
}
