import {
  type InputContext,
  messagesPrompt,
  type RunEvent,
  type RunInput,
  type RunStart,
  withNotices,
} from '@hatchway/protocol'
import { z } from 'zod'
import { createLines } from './lines.ts'
import type { ContainerProtocol, OutputReader } from './types.ts'

/**
 * The containers of other projects, as they are: they read one JSON document and print what they have to say between
 * two markers, any number of times in a run.
 */
const outputSchema = z.object({
  // An interrupted turn has ended, too, with whatever it came to.
  status: z.enum(['success', 'error', 'interrupted']),
  result: z.string().nullish(),
  newSessionId: z.string().min(1).max(256).nullish(),
  error: z.string().nullish(),
})

const blockLimit = 1_000_000

/** A notice never quotes what the agent printed. */
export const notice = (text: string): RunEvent => ({ type: 'step', kind: 'notice', text })

export const eventOf = ({ status, result, newSessionId, error }: z.infer<typeof outputSchema>): RunEvent =>
  status === 'error'
    ? {
        type: 'error',
        message: error || 'The agent failed and gave no reason.',
        session_id: newSessionId ?? null,
      }
    : { type: 'result', text: result ?? null, session_id: newSessionId ?? null }

const resultOf = (text: string): RunEvent => {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    return notice('The container printed a result that is not JSON.')
  }
  const output = outputSchema.safeParse(parsed)
  return output.success ? eventOf(output.data) : notice('The container printed a result of an unknown shape.')
}

const plainOf =
  (failureBegins: string, sent: Parameters<ContainerProtocol['createReader']>[0]) =>
  (text: string): RunEvent => {
    if (sent?.take(text)) return { type: 'message', text: text.trim() }
    sent?.clear()
    if (text.startsWith(failureBegins))
      return eventOf({ status: 'error', error: text.slice(failureBegins.length).trim() })
    return { type: 'result', text: text.trim() === '' ? null : text.trim(), session_id: null }
  }

/** What stands between the markers of one of these names. */
const between = (names: readonly string[], meaning: (text: string) => RunEvent): OutputReader => {
  const begins = names.map(name => `---${name}_OUTPUT_START---`)
  const ends = names.map(name => `---${name}_OUTPUT_END---`)
  const lines = createLines()
  let block: string[] | undefined
  let size = 0
  const take = (line: string): RunEvent[] => {
    if (begins.includes(line.trim())) {
      block = []
      size = 0
      return []
    }
    if (block && ends.includes(line.trim())) {
      const text = block.join('\n')
      block = undefined
      return [meaning(text)]
    }
    size += line.length
    if (block && size <= blockLimit) block.push(line)
    return []
  }
  return { read: chunk => lines(chunk).flatMap(take) }
}

/** Everything that was said, in its order. Ids are numbers with zeros before them. */
export const saidIn = ({ inputs, context }: RunStart): readonly RunInput[] =>
  [...context, ...inputs].sort((a, b) => (a.id < b.id ? -1 : 1))

type Wording = (messages: readonly RunInput[], context: InputContext) => string

/** What was said, as one prompt in the words of its project. Nobody says a task's prompt: it is given as it stands. */
export const promptOf = (start: RunStart, wording: Wording = messagesPrompt): string => {
  const { kind, inputs, timezone, notices = [] } = start
  return kind === 'task'
    ? withNotices(notices, inputs.map(({ text }) => text).join('\n'))
    : wording(saidIn(start), { timezone, notices })
}

export const stdinOf = (start: RunStart, wording?: Wording) => ({
  prompt: promptOf(start, wording),
  ...(start.session_id === null ? {} : { sessionId: start.session_id }),
  groupFolder: start.group.folder,
  chatJid: start.group.jid,
  isMain: start.group.main,
  ...(start.kind === 'task' ? { isScheduledTask: true } : {}),
  assistantName: start.assistant,
  ...(start.task?.script ? { script: start.task.script } : {}),
})

export const environmentOf = (prefix: string, { group, timezone }: RunStart): Record<string, string> => ({
  [`${prefix}_CHAT_JID`]: group.jid,
  [`${prefix}_GROUP_FOLDER`]: group.folder,
  [`${prefix}_IS_MAIN`]: group.main ? '1' : '0',
  TZ: timezone,
})

export const foreign = {
  mountPoint: '/workspace/ipc',
  ownRunner: false,
  namesUsed: false,
  groupAt: () => [],
  files: () => [],
} as const

export const readResults =
  (...names: string[]): ContainerProtocol['createReader'] =>
  () =>
    between(names, resultOf)
/** The end of a turn, a message in the middle of it and a failure are printed alike; a failure begins with these words. */
export const readPlainly =
  (name: string, failureBegins: string): ContainerProtocol['createReader'] =>
  sent =>
    between([name], plainOf(failureBegins, sent))
