import type { IncomingRow, MessageRow, RunRow, UntoldRefusal } from '../store/types.ts'

/**
 * What the host tells an agent before what people said. Each notice is one line, and bounded: what it quotes was
 * written by an agent.
 */
const shownCharacters = 300
const shownMessages = 5
export const shownRefusals = 10

const quoted = (text: string): string => {
  const line = text.replace(/[\s\p{Cc}]+/gu, ' ').trim()
  const shown = line.length > shownCharacters ? `${line.slice(0, shownCharacters)}…` : line
  return JSON.stringify(shown.toWellFormed())
}

/** The runs that were given these messages, or some of them, and ended before they had answered. */
export const interruptedRuns = (
  rows: readonly IncomingRow[],
  run: (id: string) => RunRow | undefined,
  runs: readonly RunRow[],
): readonly RunRow[] => {
  const [first] = rows
  const isRepeated = rows.some(({ runId }) => runId !== null && run(runId)?.status === 'failed')
  if (!first || !isRepeated) return []
  return runs.filter(
    ({ kind, status, endedAt }) =>
      kind === 'chat' && status === 'failed' && endedAt !== null && endedAt >= first.createdAt,
  )
}

/** What the agent said in these runs, after the first of the messages that it is given again. */
export const sentIn = (
  runs: readonly RunRow[],
  since: number,
  messages: readonly MessageRow[],
): readonly MessageRow[] =>
  messages.filter(
    ({ author, createdAt }) =>
      author === 'agent' &&
      runs.some(
        ({ startedAt, endedAt }) =>
          createdAt >= Math.max(startedAt, since) && createdAt <= (endedAt ?? createdAt),
      ),
  )

export const interruptionNotice = (sent: readonly MessageRow[], jid: string): string => {
  const again = 'Your turn was interrupted before it ended, and you are given the same messages again.'
  const rest = 'What else you did in it is done: check before you do it again.'
  if (sent.length === 0) return `${again} You had sent nothing yet. ${rest}`
  const shown = sent.slice(-shownMessages).map(message => {
    const what = message.kind === 'reaction' ? 'the reaction ' : ''
    const where = message.jid === jid ? '' : ` (to ${quoted(message.jid)})`
    return `${what}${quoted(message.text)}${where}`
  })
  const earlier = sent.length - shown.length
  const more = earlier > 0 ? `${earlier} earlier ${earlier === 1 ? 'message' : 'messages'}, then ` : ''
  return `${again} You had already sent: ${more}${shown.join('; ')}. Do not send that again. ${rest}`
}

/** Their tools say "scheduled" or "registered" before anybody has decided. */
export const refusalNotices = ({
  refusals,
  earlier,
}: {
  refusals: readonly UntoldRefusal[]
  earlier: number
}): readonly string[] => {
  if (refusals.length === 0) return []
  const first = earlier > 0 ? [`${earlier} earlier requests of yours were refused, too.`] : []
  return [
    ...first,
    ...refusals.map(
      ({ type, code, message }) =>
        `A request of yours was refused and not carried out, whatever its tool has said: ${type ?? 'a file that could not be read'} (${code}: ${quoted(message)}).`,
    ),
  ]
}
