import { answerQuestions } from '../../base/thread-side.ts'
import { contentFor, type RuledContent } from './content.ts'

/** Checks large bodies aside; see content-check.ts. */
answerQuestions(({ bytes, kind }: { bytes: Uint8Array; kind: RuledContent }) => contentFor(bytes, kind))
