import { type ErrorCode, refusal, type Undecodable } from '@hatchway/protocol'
import type { Problem } from '@hatchway/spool'

const codes: Record<Problem, ErrorCode> = {
  bad_name: 'bad_name',
  not_a_file: 'not_a_file',
  too_large: 'too_large',
  invalid_utf8: 'invalid_utf8',
  unreadable: 'internal',
}

/** Why a file is refused whose text could not be read. A character, or a sector, that is missing may be there soon. */
export const unreadable = (problem: Problem, fileBytes: number): Undecodable => ({
  refusal: refusal(codes[problem], describe(problem, fileBytes)),
  incomplete: problem === 'invalid_utf8' || problem === 'unreadable',
})

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
