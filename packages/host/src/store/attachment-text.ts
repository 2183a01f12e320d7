import type { IncomingRow } from './agent-types.ts'

/** What an agent reads: what was said, and where it finds the files that came along. */
export function textWithFiles({ text, attachments }: Pick<IncomingRow, 'text' | 'attachments'>): string {
  const lines = (attachments ?? []).flatMap(({ path, type, bytes }) =>
    path === undefined ? [] : [`Attached file: ${path} (${type}, ${bytes} bytes)`],
  )
  if (lines.length === 0) return text
  return [...(text.trim() === '' ? [] : [text, '']), ...lines].join('\n')
}
