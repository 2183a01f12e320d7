import { payloads } from '@hatchway/protocol'
import { z } from 'zod'
import { instant } from './instant.ts'
import { taintSchema } from './taint.ts'

/** What every card has: it stands for a request, a message tells people of it, and it is open until it is closed. */
const cardSchema = z.object({
  /** of the request that asks */
  seq: z.int(),
  group: z.string(),
  jid: z.string(),
  /** the message that tells people of it */
  messageId: z.int(),
  createdAt: instant,
  expiresAt: instant,
  closedAt: instant.nullable(),
})

const givenAnswerSchema = z.object({
  answer: z.string(),
  /** counted from 1, where one of the options was chosen */
  option: z.int().nullable(),
  by: z.string(),
})
export type QuestionAnswer = z.output<typeof givenAnswerSchema>

/** What people were asked. */
export const questionSchema = cardSchema.extend({
  questions: payloads.ask_user.shape.questions,
  answers: z
    .array(givenAnswerSchema.nullable())
    .describe('one for each question; null: nobody has answered it yet'),
  status: z.enum(['open', 'answered', 'expired', 'withdrawn']),
})
export type QuestionRow = z.output<typeof questionSchema>

/** What is in an action, fit to be shown. */
export const shownSchema = z.object({
  fields: z.array(
    z.object({
      name: z.string(),
      text: z.string().describe('as people are to see it: a text is quoted and escaped'),
      more: z.int().optional().describe('so many characters of it are left out'),
      note: z.string().optional().describe('what a reader could overlook, such as mixed alphabets'),
    }),
  ),
  more: z.int().describe('so many characters are left out'),
})
export type Shown = z.output<typeof shownSchema>

/** What a person was asked to allow. */
export const approvalSchema = cardSchema.extend({
  code: z.string(),
  action: z.object({
    name: z.string(),
    summary: z.string(),
    payload: shownSchema,
    // Whether it may be allowed from now on, too. Those of earlier versions do not say.
    always: z.boolean().default(false),
    standing: z
      .boolean()
      .default(false)
      .describe('whether the tool may be allowed, whatever it is called with'),
  }),
  taint: taintSchema,
  why: z.string(),
  /**
   * open        waits for a person
   * allowed     it happened, or was tried, because somebody said so
   * denied      it does not happen, because somebody said so
   * expired     nobody decided in time
   * withdrawn   nobody wants it any longer
   */
  status: z.enum(['open', 'allowed', 'denied', 'expired', 'withdrawn']),
  /** a name to show */
  decidedBy: z.string().nullable(),
  words: z.string().nullable().describe('what they said along with it'),
  /** made by "allow always" */
  rule: z.int().nullable(),
})
export type ApprovalRow = z.output<typeof approvalSchema>
export type ApprovalStatus = ApprovalRow['status']
export type Ending = Pick<ApprovalRow, 'status' | 'decidedBy' | 'words' | 'rule' | 'closedAt'>

/** What a person says of an approval. */
export const decisions = ['allow', 'deny', 'always', 'always_tool'] as const

/** A person's word that something may always happen: this group, and this action with exactly this, or this tool. */
export const ruleSchema = z.object({
  id: z.int(),
  group: z.string(),
  name: z.string().describe('the command or the tool'),
  summary: z.string(),
  scope: z
    .enum(['exact', 'tool'])
    .describe('exact: nothing else than what was in it; tool: the tool, whatever it is called with'),
  digest: z.string().describe('of what it allows: nothing else is allowed'),
  madeBy: z.string(),
  createdAt: instant,
})
export type RuleRow = z.output<typeof ruleSchema>
