import { payloads } from '@hatchway/protocol'
import { refused } from '../base/outcome.ts'
import { textOfQuestions } from './question-text.ts'
import { self, storeRequest } from './requests.ts'
import { defineCommand, local } from './types.ts'

/** People are asked in the group's own chat; what they say becomes the answer to the request. */
export const askUser = defineCommand({
  type: 'ask_user',
  payload: payloads.ask_user,
  permission: { main: 'own', others: 'own' },
  target: (_, context) => self(context),
  guard: local,
  execute({ questions }, context) {
    const { actor, services, transaction, seq, effect } = context
    if (!services || actor.kind !== 'group') {
      return refused('unavailable', 'This host has no way to ask a person.')
    }
    const { group } = actor
    const request = storeRequest(
      {
        kind: 'question',
        tool: 'ask_user',
        input: { questions, runId: context.host?.runOf(group.folder)?.id },
        timeoutMs: services.questionMs,
      },
      context,
    )
    if ('ok' in request) return request
    const { createdAt, expiresAt } = request
    transaction.insertMessage({
      id: seq,
      group: group.folder,
      jid: group.jid,
      author: 'agent',
      kind: 'question',
      text: textOfQuestions(questions, group),
      sender: null,
      speech: null,
      messageId: null,
      createdAt,
    })
    transaction.insertQuestion({
      seq: request.seq,
      group: group.folder,
      jid: group.jid,
      messageId: seq,
      questions,
      answers: questions.map(() => null),
      status: 'open',
      createdAt,
      expiresAt,
      closedAt: null,
    })
    effect({ kind: 'message_queued' })
    return null
  },
})
