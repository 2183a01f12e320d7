import { type Outcome, type Refusal, refusal } from '@hatchway/protocol'
import { z } from 'zod'
import type { RequestQueue } from '../../services/request-queue.ts'
import type {
  NewIncoming,
  QuestionAnswer,
  QuestionRow,
  QuestionStore,
  RequestRow,
} from '../../store/types.ts'
import type { Choice } from '../channels/types.ts'
import { answersIn, choiceOf } from './parse.ts'

/**
 * What agents ask people, from the card in the chat until the waiting tool has its answer.
 *
 *   open        waits for people; answers come one by one, each question takes the first
 *   answered    all questions have one; the request is answered with them
 *   expired     nobody answered in time
 *   withdrawn   nobody waits for it any longer
 *
 * The request queue is asked before the last answer is kept: whoever is too late is told so. The answers are durable before the
 * request's outcome is; `mend` gives what a crash left between the two to the request queue again, and closes what is over.
 */
export interface Questions {
  /** what a text said in a chat answers; undefined: nothing, and it is a message like any other */
  meantBy(chat: { jid: string; folder: string }, text: string, isForAgent: boolean): Meant | undefined
  /** the id of the message that said it; undefined: the question is over */
  take(meant: Meant, said: NewIncoming): number | undefined
  /** one question answered in its card */
  choose(chat: { jid: string; folder: string }, choice: Choice): QuestionRow | Refusal
  /** for the request queue: the outcome of a request is durable. Throws, with nothing done, if the store fails. */
  over(request: Pick<RequestRow, 'seq' | 'kind'>, outcome: Outcome): void
  /** after a start, once the request queue knows what is open */
  mend(): void
}

interface Meant {
  row: QuestionRow
  answers: readonly { index: number; answer: string; option: number | null }[]
}

export interface QuestionsOptions {
  store: QuestionStore
  /** undefined: agents cannot ask people */
  requestQueue: Pick<RequestQueue, 'answer' | 'open' | 'groupGone'> | undefined
  isRegistered(folder: string): boolean
  /** there is something new to show of it */
  changed(row: QuestionRow): void
  now(): number
}

export function createQuestions(options: QuestionsOptions): Questions {
  const { store, now } = options

  /** false: it is over */
  const settle = (row: QuestionRow): boolean => options.requestQueue?.answer(row.seq, outcomeOf(row)) ?? false

  const withAnswers = (row: QuestionRow, answers: Meant['answers'], by: string): QuestionRow => {
    const all = row.answers.map((before, index) => {
      const given = answers.find(candidate => candidate.index === index)
      return before ?? (given ? { answer: given.answer, option: given.option, by } : null)
    })
    return all.includes(null)
      ? { ...row, answers: all }
      : { ...row, answers: all, status: 'answered', closedAt: now() }
  }

  const close = (row: QuestionRow, outcome: Outcome | null) => {
    const closed = { ...endOf(row, outcome), closedAt: now() }
    store.update(closed)
    options.changed(closed)
  }

  /** Its request is over, and the card does not show it yet. */
  const closeLate = (row: QuestionRow) => {
    // What is still in the request queue is decided, and we are told in a moment.
    const isInQueue = options.requestQueue?.open().some(({ seq }) => seq === row.seq) ?? true
    if (!isInQueue) close(row, store.outcome(row.seq))
  }

  return {
    meantBy({ jid, folder }, text, isForAgent) {
      const row = store.open(jid).find(({ group }) => group === folder)
      if (!row) return undefined
      const unanswered = row.answers.flatMap((answer, index) => (answer ? [] : [index]))
      const questions = unanswered.flatMap(index => row.questions[index] ?? [])
      const choices = answersIn(text, questions, isForAgent)
      return (
        choices && {
          row,
          answers: choices.map((choice, i) => ({ ...choice, index: unanswered[i] ?? 0 })),
        }
      )
    },
    take({ row, answers }, said) {
      const answered = withAnswers(row, answers, said.senderName)
      if (answered.status === 'answered' && !settle(answered)) {
        closeLate(row)
        return undefined
      }
      const id = store.update(answered, said)
      options.changed(answered)
      return id
    },
    choose({ jid, folder }, { id, question: number, answer, senderName: by }) {
      const row = /^\d{1,15}$/.test(id) ? store.question(Number(id)) : undefined
      if (!row || row.jid !== jid || row.group !== folder) {
        return refusal('not_found', 'There is no such question in this chat.')
      }
      const index = number - 1
      const question = row.questions[index]
      if (!question) return refusal('invalid_field', `question: there are ${row.questions.length}`)
      const before = row.answers[index]
      if (before) return refusal('wrong_state', answeredBefore(before))
      if (row.status !== 'open') return refusal('wrong_state', endings[row.status])
      const choice =
        'option' in answer
          ? choiceOf(question, answer.option)
          : { answer: answer.text.trim().toWellFormed(), option: null }
      if (!choice) return refusal('invalid_field', `option: there are ${question.options?.length ?? 0}`)
      if (choice.answer === '') return refusal('invalid_field', 'text: is empty')
      const answered = withAnswers(row, [{ ...choice, index }], by)
      if (answered.status === 'answered' && !settle(answered)) {
        closeLate(row)
        return refusal('wrong_state', endings.withdrawn)
      }
      store.update(answered)
      options.changed(answered)
      return answered
    },
    over({ seq, kind }, outcome) {
      if (kind !== 'question') return
      const row = store.question(seq)
      if (row?.status === 'open') close(row, outcome)
    },
    mend() {
      const { requestQueue } = options
      const waiting = (requestQueue?.open() ?? []).filter(({ kind }) => kind === 'question')
      for (const { seq, group } of waiting) {
        const row = store.question(seq)
        if (!options.isRegistered(group)) requestQueue?.groupGone(group)
        else if (row?.status === 'answered') settle(row)
      }
      const isWaiting = new Set(waiting.map(({ seq }) => seq))
      for (const row of store.open()) {
        if (!isWaiting.has(row.seq)) close(row, store.outcome(row.seq))
      }
    },
  }
}

const outcomeOf = ({ questions, answers }: QuestionRow): Outcome => ({
  ok: true,
  result: {
    answers: answers.flatMap((given, i) => {
      const question = questions[i]?.question
      if (!given || question === undefined) return []
      const { answer, option, by } = given
      return [{ question, answer, ...(option === null ? {} : { option }), by }]
    }),
  },
})

const givenAnswers = z.object({
  answers: z.array(z.object({ answer: z.string(), option: z.number().optional(), by: z.string() })),
})

/** The outcome is what counts: the answers may not have been kept before it was. */
const endOf = (row: QuestionRow, outcome: Outcome | null): QuestionRow => {
  if (!outcome?.ok) return { ...row, status: outcome?.error.code === 'expired' ? 'expired' : 'withdrawn' }
  const { answers } = givenAnswers.parse(outcome.result)
  return {
    ...row,
    status: 'answered',
    answers: row.answers.map((before, i) => {
      const { answer, option = null, by } = answers[i] ?? {}
      return answer === undefined || by === undefined ? before : { answer, option, by }
    }),
  }
}

const endings = {
  answered: 'The question is answered.',
  expired: 'The question is over: nobody answered in time.',
  withdrawn: 'The question is over: it is no longer needed.',
} as const

const quotedAtMost = 200

const answeredBefore = ({ answer, by }: QuestionAnswer): string => {
  const quoted = answer.length > quotedAtMost ? `${answer.slice(0, quotedAtMost).toWellFormed()}…` : answer
  return `${by} has answered this already: ${quoted}`
}
