import {
  type ErrorCode,
  parseStrict,
  type Refusal,
  refusal,
  type Translation,
  translate,
} from '@hatchway/protocol'
import type { ClaimedFile, Problem } from '@hatchway/spool'

/** A claimed file as far as it can be understood without knowing anything but the file. */
export type Decoded =
  | { kind: 'half_written' }
  | { kind: 'refused'; refusal: Refusal }
  | { kind: 'translated'; translation: Translation }

const problems: Record<Problem, ErrorCode> = {
  bad_name: 'bad_name',
  not_a_file: 'not_a_file',
  too_large: 'too_large',
  invalid_utf8: 'invalid_utf8',
  unreadable: 'internal',
}

export function decode(file: ClaimedFile, limits: { fileBytes: number; jsonDepth: number }): Decoded {
  const { problem } = file
  if (problem) {
    // A character, or a sector, that is not there yet may be a moment later.
    if (file.mayGrow && (problem === 'invalid_utf8' || problem === 'unreadable'))
      return { kind: 'half_written' }
    return { kind: 'refused', refusal: refusal(problems[problem], describe(problem, limits.fileBytes)) }
  }
  const parsed = parseStrict(file.text, { depth: limits.jsonDepth, mayGrow: file.mayGrow })
  if ('body' in parsed)
    return {
      kind: 'translated',
      translation: translate({ directory: file.subdirectory, sender: file.inbox, body: parsed.body }),
    }
  if (parsed.incomplete && file.mayGrow) return { kind: 'half_written' }
  return { kind: 'refused', refusal: parsed.refusal }
}

function describe(problem: Problem, fileBytes: number): string {
  switch (problem) {
    case 'bad_name':
      return 'The file name has characters that are not allowed, or is too long.'
    case 'not_a_file':
      return 'This is not a regular file with a single link.'
    case 'too_large':
      return `The file is larger than ${fileBytes} bytes.`
    case 'invalid_utf8':
      return 'The file is not valid UTF-8.'
    case 'unreadable':
      return 'The file could not be read: the host may not open it, or the disk failed.'
  }
}
