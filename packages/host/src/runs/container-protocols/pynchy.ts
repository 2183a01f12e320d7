import { escapeXml, type RunEvent, type RunStart } from '@hatchway/protocol'
import { z } from 'zod'
import { environmentOf, eventOf, foreign, notice, readResults, saidIn, stdinOf } from './foreign.ts'
import type { ContainerProtocol, Outlet } from './types.ts'

/** Pynchy's container finds its document in its inbox and says everything, its thoughts included, in files. */
const text = z.string().nullish()
const sessionId = z.string().min(1).max(256).nullish()

const outputSchema = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('result'),
    status: z.enum(['success', 'error']),
    result: text,
    new_session_id: sessionId,
    newSessionId: sessionId,
    error: text,
  }),
  z.object({ type: z.literal('thinking'), thinking: text }),
  z.object({ type: z.literal('text'), text }),
  z.object({ type: z.literal('tool_use'), tool_name: text, tool_input: z.unknown() }),
  z.object({ type: z.literal('tool_result'), tool_result_content: z.unknown() }),
  z.object({ type: z.literal('system'), system_subtype: text }),
])

const asText = (value: unknown): string =>
  typeof value === 'string' ? value : value == null ? '' : JSON.stringify(value)

const meaning: Outlet['meaning'] = (body): RunEvent[] => {
  const read = outputSchema.safeParse(body)
  if (!read.success) return [notice('The container put a file of an unknown shape into output/.')]
  const output = read.data
  switch (output.type) {
    case 'result':
      return [eventOf({ ...output, newSessionId: output.new_session_id ?? output.newSessionId })]
    case 'thinking':
      return [{ type: 'step', kind: 'thinking', text: output.thinking ?? '' }]
    case 'text':
      return [{ type: 'step', kind: 'text', text: output.text ?? '' }]
    case 'tool_use':
      return [
        {
          type: 'step',
          kind: 'tool_call',
          name: output.tool_name ?? 'unknown',
          text: asText(output.tool_input),
        },
      ]
    case 'tool_result':
      return [{ type: 'step', kind: 'tool_result', text: asText(output.tool_result_content) }]
    case 'system':
      return [notice(`The container’s agent reports: ${output.system_subtype ?? 'something'}.`)]
  }
}

/** Its reader leaves out what it does not know; who is privileged had another name in each of its versions. */
const documentOf = (start: RunStart) => ({
  ...stdinOf(start),
  messages: saidIn(start).map(({ sender, sender_name, text, timestamp }) => ({
    message_type: 'user',
    sender,
    sender_name,
    content: text,
    timestamp,
  })),
  group_folder: start.group.folder,
  chat_jid: start.group.jid,
  is_admin: start.group.main,
  is_god: start.group.main,
  is_main: start.group.main,
  session_id: start.session_id,
  is_scheduled_task: start.kind === 'task',
  // With one it works in /workspace/project, where the worktree is.
  repo_access: start.repository ?? null,
  system_prompt_append: start.driver.instructions ?? null,
  // It puts them before the prompt as they stand.
  system_notices: start.notices?.map(escapeXml) ?? null,
})

export const pynchy: ContainerProtocol = {
  ...foreign,
  // Its tool for todos writes its list beside the host's, and renames it.
  rootFiles: ['current_tasks.json', 'available_groups.json', 'todos.json'],
  // Its privileged agent works in the project, which stays on the host; in its place it has its own folder.
  groupAt: ({ group }) => (group.main ? ['/workspace/project'] : []),
  stdin: () => '',
  environment: start => ({
    ...environmentOf('PYNCHY', start),
    PYNCHY_IS_ADMIN: start.group.main ? '1' : '0',
    PYNCHY_IS_SCHEDULED_TASK: start.kind === 'task' ? '1' : '0',
    PYNCHY_SESSION_ID: start.session_id ?? '',
  }),
  files: start => [{ path: 'input/initial.json', content: JSON.stringify(documentOf(start)) }],
  createReader: readResults('NANOCLAW', 'PYNCHY'),
  outlet: { directory: 'output', meaning },
}
