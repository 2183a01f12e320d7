import { jidSchema } from '@hatchway/protocol'
import { z } from 'zod'
import { approvalSchema, decisions, questionSchema, shownSchema } from '../store/entities/card.ts'
import { attachmentSchema } from '../store/entities/file.ts'
import { incomingSchema, messageSchema } from '../store/entities/message.ts'
import { wire } from './wire.ts'

/** What the chat routes take and answer, on the daemon's socket and to browsers alike. */
export const chatStatusAnswer = z.object({
  version: z.string(),
  assistant: z.string().describe('the name agents go by'),
  warning: z.string().nullable().describe('what whoever writes here should know all the time'),
  attachment_bytes: z.int().describe('the largest file that can be sent; 0: none can'),
})

export const chatAnswer = z
  .object({
    jid: z.string(),
    folder: z.string(),
    name: z.string(),
    main: z.boolean(),
    channel: z.string().describe('that delivers what is said there'),
    writable: z
      .boolean()
      .describe('whether it can be written to from here; others have a place of their own'),
    trigger: z.string().nullable().describe('what calls the agent; null: everything said there is for it'),
    typing: z.boolean(),
    waiting: z
      .object({ questions: z.int(), approvals: z.int() })
      .describe('how many cards in it wait for a person'),
  })
  .meta({ id: 'Chat' })

const question = wire(questionSchema).schema
export const questionAnswer = z
  .object({ id: z.string() })
  .extend(question.pick({ questions: true, answers: true, status: true }).shape)
  .meta({ id: 'Question' })

export const listedQuestionAnswer = questionAnswer
  .extend(question.pick({ group: true, jid: true, created_at: true, expires_at: true }).shape)
  .extend({
    can_answer: z.boolean().describe('whether it can be answered here; others in the place of their chat'),
  })
  .meta({ id: 'ListedQuestion' })
export const questionsAnswer = z.array(listedQuestionAnswer)

const approval = wire(approvalSchema).schema
export const approvalAnswer = z
  .object({ id: z.string(), action: approvalSchema.shape.action.omit({ always: true, standing: true }) })
  .extend(approval.pick({ why: true, status: true, decided_by: true, words: true }).shape)
  .extend({
    always: z.boolean().describe('whether exactly this, or the tool, is allowed from now on'),
    expires_at: approval.shape.expires_at,
    can_decide: z.boolean().describe('whether it is open, and the operator’s to decide'),
    can_always: z.boolean().describe('whether it may be allowed from now on, too'),
    can_always_tool: z.boolean().describe('whether the tool may be allowed, whatever it is called with'),
  })
  .meta({ id: 'Approval' })

export const listedApprovalAnswer = approvalAnswer
  .extend(approval.pick({ group: true, jid: true, created_at: true, closed_at: true }).shape)
  .meta({ id: 'ListedApproval' })
export const approvalsAnswer = z.array(listedApprovalAnswer)

export const wholeApprovalAnswer = listedApprovalAnswer.extend({
  whole: shownSchema.nullable().describe('all that is in it; null where it is over'),
})

export const fileAnswer = attachmentSchema.omit({ path: true }).meta({ id: 'File' })

export const entryAnswer = z
  .object({
    key: z.string(),
    direction: z.enum(['in', 'out']),
    jid: z.string(),
    kind: messageSchema.shape.kind,
    sender: z.string().nullable(),
    text: z.string(),
    at: z.iso.datetime(),
    status: z.enum([...incomingSchema.shape.status.options, ...messageSchema.shape.status.options]),
    error: z.string().nullable(),
    attachments: z.array(fileAnswer).optional().describe('files that go along'),
    question: questionAnswer.optional().describe('what the message asks, with the answers so far'),
    approval: approvalAnswer.optional().describe('what it asks to allow, and what has become of that'),
  })
  .meta({ id: 'Entry' })

export const entriesAnswer = z.object({
  entries: z.array(entryAnswer),
  more: z.boolean().describe('whether there are older ones'),
})

export const newEntryRequest = z.strictObject({
  text: z.string(),
  attachments: z
    .array(z.string().regex(/^[0-9a-f]{24}$/, 'must be the id of a file'))
    .max(10)
    .optional()
    .describe('ids of files that were posted to the chat before'),
  id: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,128}$/, 'must be 1 to 128 letters, digits, "-" or "_"')
    .optional()
    .describe('the writer’s own: posted again under it, it is not taken twice'),
  timezone: z
    .string()
    .max(64)
    .optional()
    .describe('where the writer is, such as Europe/Lisbon; one that is not known is passed over'),
})

export const newEntryAnswer = z.object({
  key: z.string().nullable().describe('null: it was posted before'),
  status: z.enum(['waiting', 'context', 'used']).describe('used: it answered or decided something'),
})

const questionNumber = z.int().min(1).max(4).default(1).describe('which question of the card')
export const choiceRequest = z.union([
  z.strictObject({ question: questionNumber, option: z.int().min(1).max(20) }),
  z.strictObject({ question: questionNumber, text: z.string().min(1).max(20_000) }),
])

export const decisionRequest = z.strictObject({
  decision: z.enum(decisions),
  words: z.string().max(2000).optional().describe('why not; the agent is told'),
})

export const chatEventAnswer = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('hello'),
    complete: z.boolean().describe('whether nothing was missed; if not, the chats are to be read again'),
    typing: z.array(z.string()),
    live_texts: z
      .array(z.object({ jid: z.string(), text: z.string(), tool: z.string().nullable() }))
      .describe('what agents are writing in these chats; no messages yet'),
  }),
  z.object({ kind: z.literal('entry'), entry: entryAnswer }),
  z.object({ kind: z.literal('typing'), jid: z.string(), on: z.boolean() }),
  z.object({ kind: z.literal('chats') }),
  z
    .object({
      kind: z.literal('live_text'),
      jid: z.string(),
      from: z.int(),
      text: z.string(),
      tool: z.string().nullable(),
    })
    .describe(
      'from this UTF-16 unit on, what the agent is writing is this, and it uses this tool; from 0 without text and tool: nothing is shown of it any more',
    ),
])

export const chatsAnswer = z.array(chatAnswer)
export const chatJid = jidSchema

export type ChatStatusAnswer = z.infer<typeof chatStatusAnswer>
export type ChatAnswer = z.infer<typeof chatAnswer>
export type FileAnswer = z.infer<typeof fileAnswer>
export type EntryAnswer = z.infer<typeof entryAnswer>
export type QuestionAnswer = z.infer<typeof questionAnswer>
export type ListedQuestionAnswer = z.infer<typeof listedQuestionAnswer>
export type ApprovalAnswer = z.infer<typeof approvalAnswer>
export type ListedApprovalAnswer = z.infer<typeof listedApprovalAnswer>
export type WholeApprovalAnswer = z.infer<typeof wholeApprovalAnswer>
export type ChatEventAnswer = z.infer<typeof chatEventAnswer>
