import type { RunEvent, RunStart } from '@hatchway/protocol'
import { z } from 'zod'
import { createLines } from './lines.ts'
import type { OutputReader } from './types.ts'

/**
 * The containers of other projects, as they are: they read one JSON document and print what they have to say between
 * two markers, any number of times in a run (dialects.md).
 */
const outputSchema = z.object({
  // An interrupted turn has ended, too, with whatever it came to.
  status: z.enum(['success', 'error', 'interrupted']),
  result: z.string().nullish(),
  newSessionId: z.string().min(1).max(256).nullish(),
  error: z.string().nullish(),
})

const blockLimit = 1_000_000

/** Never quoted: what an agent prints is its own (lesson 13). */
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

const plainOf = (text: string): RunEvent => ({
  type: 'result',
  text: text.trim() === '' ? null : text.trim(),
  session_id: null,
})

/** What stands between the markers of one of these names. */
const between = (names: readonly string[], meaning: (text: string) => RunEvent) => (): OutputReader => {
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

/** What was said, as one prompt: these containers know nothing of single messages. */
export const promptOf = ({ inputs, context }: Pick<RunStart, 'inputs' | 'context'>): string => {
  if (inputs.length === 1 && context.length === 0) return inputs[0]?.text ?? ''
  return [...context, ...inputs].map(({ sender_name, text }) => `${sender_name}: ${text}`).join('\n')
}

export const stdinOf = (start: RunStart) => ({
  prompt: promptOf(start),
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

export const readResults = (...names: string[]) => between(names, resultOf)
export const readPlainly = (...names: string[]) => between(names, plainOf)
