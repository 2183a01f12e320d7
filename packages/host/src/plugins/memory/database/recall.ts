import type { Connection } from '../../../store/connection.ts'
import type { KnownWord, Vocabulary } from './vocabulary.ts'
import { hasForms, wordsAskedFor } from './words.ts'

/**
 * Finds memories by the words of a query, ranked by BM25.
 *
 * BM25 costs about a microsecond for each memory it looks at, so a word that half of a hundred thousand memories have
 * would cost 50 ms. The rare words of a query tell most, and are few: they choose who is ranked. Words that are common
 * only add to the rank of those, and choose by themselves only together, or among the newest.
 *
 * Words that hold a word of the query, or are most of it, are a second, lighter ranking beside the first.
 */
export type Recall = (query: string, category: string | undefined, limit: number) => number[]

/** Memories that the rare words of one ranking may have together, and that common words may choose. */
const rankedMemories = 2000
/** so many of them, the best, are compared with those of another ranking */
const bestMemories = 100
/** so many words of a query are used, the rarest */
const usedWords = 16
const usedCommonWords = 4
/** so many words of a query are looked for inside others */
const takenApart = 8

/** A word in the key says more than one in the content. */
const score = 'bm25(word_index, 2.0, 1.0)'
const relatedWeight = 0.3
/** BM25 gives nothing to a word that most memories have, and in a small group that is nearly every word. */
const exactBonus = 1
const completeBonus = 2

export function createRecall({ sql }: Pick<Connection, 'sql'>, vocabulary: Vocabulary): Recall {
  const best = (newest: string) =>
    sql(`SELECT id, score FROM (${newest} ORDER BY word_index.rowid DESC LIMIT ${rankedMemories})
      ORDER BY score LIMIT ${bestMemories}`)
  const rank = (match: string, category: string | undefined) =>
    category === undefined
      ? best(`SELECT rowid AS id, ${score} AS score FROM word_index WHERE word_index MATCH ?`).all(match)
      : // CROSS JOIN: the index first, whatever the planner thinks of the category.
        best(`SELECT word_index.rowid AS id, ${score} AS score
          FROM word_index CROSS JOIN memories ON memories.id = word_index.rowid
          WHERE word_index MATCH ? AND memories.category_key = ?`).all(match, category)

  const ranking = (words: readonly KnownWord[], category: string | undefined, limit: number) => {
    const scores = new Map<number, number>()
    /** A memory's best score is the one in which most of its words were counted; lower is better. */
    const add = (match: string) => {
      for (const { id, score } of rank(match, category))
        scores.set(Number(id), Math.min(Number(score), scores.get(Number(id)) ?? 0))
    }
    const { rare, common } = byRarity(words, Number(sql('SELECT memories FROM totals').get()?.memories))
    if (rare.length > 0) add(any(rare))
    if (common.length === 0) return scores
    if (rare.length > 0) add(`(${any(rare)}) AND (${any(common)})`)
    const last = [...scores.values()].sort((a, b) => a - b)[limit - 1]
    if (last !== undefined && -last >= sumOf(common)) return scores
    if (common.length > 1) add(all(common))
    if (scores.size < limit) add(any(common))
    return scores
  }

  /** Those that have every word, as far as they were ranked. */
  const complete = (words: readonly KnownWord[]): ReadonlySet<number> => {
    if (words.length < 2) return new Set()
    const found = sql(`SELECT rowid AS id FROM word_index WHERE word_index MATCH ?
      ORDER BY rowid DESC LIMIT ${rankedMemories}`).all(all(words))
    return new Set(found.map(({ id }) => Number(id)))
  }

  return (query, category, limit) => {
    const { exact, related } = wordsFor(vocabulary, query)
    const scores = new Map<number, number>()
    const haveAll = complete(exact)
    for (const [id, score] of ranking(exact, category, limit))
      scores.set(id, score - exactBonus - (haveAll.has(id) ? completeBonus : 0))
    for (const [id, score] of ranking(related, category, limit))
      scores.set(id, (scores.get(id) ?? 0) + relatedWeight * score)
    return [...scores]
      .sort(([a, scoreA], [b, scoreB]) => scoreA - scoreB || b - a)
      .slice(0, limit)
      .map(([id]) => id)
  }
}

/** The words of the query as they are kept; for one that is not, the closest that is. Then those that are like them. */
function wordsFor(vocabulary: Vocabulary, query: string): { exact: KnownWord[]; related: KnownWord[] } {
  const asked = wordsAskedFor(query)
  const kept = vocabulary.known(asked)
  const known = new Set(kept.map(({ word }) => word))
  const unknown = asked.filter(word => !known.has(word))
  const exact = kept.slice(0, usedWords)
  // A common word is found often enough as it is.
  const rare = kept.filter(({ memories }) => memories <= rankedMemories).map(({ word }) => word)
  const related = new Map<string, KnownWord>()
  let memories = 0
  for (const word of [...unknown, ...rare].filter(hasForms).slice(0, takenApart)) {
    for (const form of vocabulary.related(word)) {
      if (known.has(form.word)) known.add(word)
      else if (!known.has(word)) {
        exact.push(form)
        known.add(word).add(form.word)
      } else if (!related.has(form.word) && memories + form.memories <= rankedMemories) {
        memories += form.memories
        related.set(form.word, form)
      }
    }
  }
  return { exact, related: [...related.values()] }
}

interface WeighedWord extends KnownWord {
  /** what a memory gets for it, about: BM25's inverse frequency */
  weight: number
}

function byRarity(
  words: readonly KnownWord[],
  total: number,
): { rare: WeighedWord[]; common: WeighedWord[] } {
  const rare: WeighedWord[] = []
  const common: WeighedWord[] = []
  let ranked = 0
  for (const { word, memories } of words.toSorted((a, b) => a.memories - b.memories)) {
    const weight = Math.log((total - memories + 0.5) / (memories + 0.5))
    ranked += memories
    if (ranked <= rankedMemories) rare.push({ word, memories, weight })
    // What every third memory has tells nothing, beside other words.
    else if (weight > 1 || rare.length + common.length === 0) common.push({ word, memories, weight })
  }
  return { rare, common: common.slice(0, usedCommonWords) }
}

const sumOf = (words: readonly WeighedWord[]) => words.reduce((sum, { weight }) => sum + weight, 0)
const quoted = ({ word }: KnownWord) => `"${word}"`
const any = (words: readonly KnownWord[]) => words.map(quoted).join(' OR ')
const all = (words: readonly KnownWord[]) => words.map(quoted).join(' AND ')
