import type { IncomingRow } from './types.ts'

/** What an agent reads: what was said, and where it finds the files that came along. */
export function textWithFiles({
  text,
  attachments,
  quote,
}: Pick<IncomingRow, 'text' | 'attachments' | 'quote'>): string {
  const lines = (attachments ?? []).flatMap(({ path, type, bytes }) =>
    path === undefined ? [] : [`Attached file: ${path} (${type}, ${bytes} bytes)`],
  )
  if (quote?.text !== undefined && quote.text !== '')
    lines.unshift(`In answer to ${quote.senderName ?? 'somebody'}: ${JSON.stringify(quote.text)}`)
  if (lines.length === 0) return text
  return [...(text.trim() === '' ? [] : [text, '']), ...lines].join('\n')
}
