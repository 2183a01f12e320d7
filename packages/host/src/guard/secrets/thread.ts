import { answerQuestions } from '../../base/thread-side.ts'
import { findForms } from './forms.ts'
import { lint } from './lint.ts'
import { indexPayload, type PayloadIndex, TooMuch } from './payload-index.ts'
import type { FoundSecret } from './search.ts'

/** Searches payloads, one after the other; see search.ts. */
const mostFound = 16

async function search(payload: string): Promise<FoundSecret[]> {
  let index: PayloadIndex
  try {
    index = indexPayload(JSON.parse(payload))
  } catch (error) {
    if (error instanceof TooMuch) return [{ kind: 'too_large_to_search', where: 'payload' }]
    throw error
  }
  const hits = [
    ...(await lint(index.text)),
    ...findForms(index.text),
    ...index.named.map(value => ({ kind: 'password', value })),
  ]
  const found = new Map<string, FoundSecret>()
  for (const hit of hits) {
    const value = 'value' in hit ? hit.value : index.valueAt(hit.index)
    const where = index.placeOf(value, await isSecret(index.keyOf(value)))
    found.set(`${hit.kind} ${where}`, { kind: hit.kind, where })
    if (found.size >= mostFound) break
  }
  return [...found.values()]
}

const isSecret = async (key: string): Promise<boolean> =>
  !findForms(key, 1).next().done || (await lint(key)).length > 0

answerQuestions((payload: string) =>
  search(payload).catch((): FoundSecret[] => [{ kind: 'search_failed', where: 'payload' }]),
)
