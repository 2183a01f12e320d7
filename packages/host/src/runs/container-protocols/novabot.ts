import type { RunEvent, RunStart } from '@hatchway/protocol'
import { z } from 'zod'
import { environmentOf, eventOf, foreign, notice, promptOf, readResults, stdinOf } from './foreign.ts'
import type { ContainerProtocol, Outlet } from './types.ts'

/**
 * NovaBot's container has two ways to run, and tells them apart by the prompt in its document: with one it answers that
 * on standard output and ends, which is how it is given tasks; without one it stays, takes messages out of `inbox/` and
 * puts each answer, under the message's own id, into `outbox/`. Its code prints NanoClaw's markers, its document
 * names its own.
 */
const answerSchema = z.object({
  id: z.string().min(1).max(128),
  status: z.enum(['success', 'error', 'interrupted']),
  result: z.string().nullish(),
  newSessionId: z.string().min(1).max(256).nullish(),
  error: z.string().nullish(),
})

const meaning: Outlet['meaning'] = (body): RunEvent[] => {
  const answer = answerSchema.safeParse(body)
  if (!answer.success) return [notice('The container put a file of an unknown shape into outbox/.')]
  const { id } = answer.data
  if (id === 'ready') return [{ type: 'ready' }]
  const event = eventOf(answer.data)
  // What could not be answered is not used, and goes to the next run.
  return event.type === 'error' ? [event] : [{ type: 'used', inputs: [id] }, event]
}

const stays = ({ kind }: RunStart) => kind === 'chat'

const documentOf = (start: RunStart) => {
  const { prompt, assistantName, ...rest } = stdinOf(start)
  return { ...(stays(start) ? {} : { prompt }), ...rest, assistantName, agentName: assistantName }
}

/** Everything the run begins with is one message, under the id of the first. */
const firstMessage = (start: RunStart) => {
  const id = start.inputs[0]?.id ?? start.run_id
  const timestamp = start.inputs.at(-1)?.timestamp
  return { path: `inbox/${id}.json`, content: JSON.stringify({ id, prompt: promptOf(start), timestamp }) }
}

export const novabot: ContainerProtocol = {
  ...foreign,
  namesUsed: true,
  stdin: start => JSON.stringify(documentOf(start)),
  environment: start => ({
    ...environmentOf('NANOCLAW', start),
    CHAT_JID: start.group.jid,
    GROUP_FOLDER: start.group.folder,
    IS_MAIN: String(start.group.main),
  }),
  files: start => (stays(start) ? [firstMessage(start)] : []),
  createReader: readResults('NANOCLAW', 'NOVABOT'),
  outlet: { directory: 'outbox', meaning },
}
