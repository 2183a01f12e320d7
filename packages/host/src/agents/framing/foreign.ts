import type { RunEvent, RunStart } from '@hatchway/protocol'
import { z } from 'zod'
import { createLines } from './lines.ts'
import type { Framing, OutputReader } from './types.ts'

/**
 * The containers of other projects, as they are: they read one JSON document and print what they have to say between
 * two markers, any number of times in a run (dialects.md).
 */
const outputSchema = z.object({
  status: z.enum(['success', 'error']),
  result: z.string().nullish(),
  newSessionId: z.string().min(1).max(256).nullish(),
  error: z.string().nullish(),
})

const blockLimit = 1_000_000

const resultOf = (text: string): RunEvent => {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    return { type: 'step', kind: 'notice', text: 'The container printed a result that is not JSON.' }
  }
  const output = outputSchema.safeParse(parsed)
  if (!output.success) {
    return { type: 'step', kind: 'notice', text: 'The container printed a result of an unknown shape.' }
  }
  const { status, result = null, newSessionId = null, error } = output.data
  if (status === 'error') {
    return {
      type: 'error',
      message: error || 'The agent failed and gave no reason.',
      session_id: newSessionId,
    }
  }
  return { type: 'result', text: result, session_id: newSessionId }
}

const plainOf = (text: string): RunEvent => ({
  type: 'result',
  text: text.trim() === '' ? null : text.trim(),
  session_id: null,
})

const between = (name: string, meaning: (text: string) => RunEvent) => (): OutputReader => {
  const begin = `---${name}_OUTPUT_START---`
  const end = `---${name}_OUTPUT_END---`
  const lines = createLines()
  let block: string[] | undefined
  let size = 0
  const take = (line: string): RunEvent[] => {
    if (line.trim() === begin) {
      block = []
      size = 0
      return []
    }
    if (block && line.trim() === end) {
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
const promptOf = ({ inputs, context }: Pick<RunStart, 'inputs' | 'context'>): string => {
  if (inputs.length === 1 && context.length === 0) return inputs[0]?.text ?? ''
  return [...context, ...inputs].map(({ sender_name, text }) => `${sender_name}: ${text}`).join('\n')
}

const stdinOf = (start: RunStart) => ({
  prompt: promptOf(start),
  ...(start.session_id === null ? {} : { sessionId: start.session_id }),
  groupFolder: start.group.folder,
  chatJid: start.group.jid,
  isMain: start.group.main,
  ...(start.kind === 'task' ? { isScheduledTask: true } : {}),
  assistantName: start.assistant,
  ...(start.task?.script ? { script: start.task.script } : {}),
})

const environmentOf = (prefix: string, { group, timezone }: RunStart): Record<string, string> => ({
  [`${prefix}_CHAT_JID`]: group.jid,
  [`${prefix}_GROUP_FOLDER`]: group.folder,
  [`${prefix}_IS_MAIN`]: group.main ? '1' : '0',
  TZ: timezone,
})

const foreign = { mountPoint: '/workspace/ipc', ownRunner: false, files: () => [] } as const

export const nanoclaw: Framing = {
  ...foreign,
  dialect: 'nanoclaw',
  stdin: start => JSON.stringify(stdinOf(start)),
  environment: start => environmentOf('NANOCLAW', start),
  createReader: between('NANOCLAW', resultOf),
}

export const novabot: Framing = {
  ...foreign,
  dialect: 'novabot',
  stdin: start => JSON.stringify(stdinOf(start)),
  environment: start => ({
    ...environmentOf('NANOCLAW', start),
    CHAT_JID: start.group.jid,
    GROUP_FOLDER: start.group.folder,
    IS_MAIN: String(start.group.main),
  }),
  createReader: between('NOVABOT', resultOf),
}

export const mdclaw: Framing = {
  ...foreign,
  dialect: 'mdclaw',
  mountPoint: '/ipc',
  // The field has to be there; keys stay on the host.
  stdin: start => JSON.stringify({ ...stdinOf(start), secrets: {} }),
  environment: start => environmentOf('NANOCLAW', start),
  createReader: between('NANOCLAW', plainOf),
}

export const pynchy: Framing = {
  ...foreign,
  dialect: 'pynchy',
  stdin: () => '',
  environment: start => environmentOf('PYNCHY', start),
  files: start => [{ path: 'input/initial.json', content: JSON.stringify(stdinOf(start)) }],
  createReader: between('NANOCLAW', resultOf),
}
