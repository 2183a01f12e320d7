import type { Connection } from '../../../store/connection.ts'
import { hasForms, withoutArticle } from './words.ts'

/** A word that is kept, and how many memories have it. */
export interface KnownWord {
  word: string
  memories: number
}

/**
 * All words of a group's memories. Words inside words are looked for here and not in the memories: there are far fewer
 * words than places they stand at (docs/decisions/011).
 */
export interface Vocabulary {
  /** the words of one memory change from `before` to `after` */
  change(before: ReadonlySet<string>, after: ReadonlySet<string>): void
  /** those of the words that are kept, the rarest first */
  known(words: readonly string[]): KnownWord[]
  /** kept words that hold this one, or are most of it; the closest first */
  related(word: string): KnownWord[]
}

/** How many words are looked at, and how many of them are used, for one word of a query. */
const looked = 200
const used = 24
const longestTakenApart = 40
/** Shorter words stand in too many others by chance; at the end of one they are likely meant: tea in Ostfriesentee. */
const shortestInside = 4
const shortestAtEnd = 3
/** Words that differ in so many letters at the end may be forms of one: reminder, reminders. */
const ending = 4
/** … if they begin with so much alike. */
const beginning = 0.55

export function createVocabulary({ sql }: Pick<Connection, 'sql'>): Vocabulary {
  const beginningAlike = (word: string): KnownWord[] => {
    const start = word.slice(0, Math.max(3, Math.ceil(word.length * beginning)))
    const found = sql(`SELECT word, memories FROM words
      WHERE word >= ? AND word < ? AND length(word) BETWEEN ? AND ? LIMIT ${looked}`)
    return rows(found.all(start, `${start}\u{10FFFF}`, word.length - ending, word.length + ending))
  }
  const holding = (word: string): KnownWord[] => {
    if (word.length < shortestAtEnd) return []
    const found = sql(`SELECT word, memories FROM words
      WHERE id IN (SELECT rowid FROM word_parts WHERE word_parts MATCH ? LIMIT ${looked})`)
    const all = rows(found.all(`"${word}"`))
    return word.length < shortestInside ? all.filter(known => known.word.endsWith(word)) : all
  }
  const named = (words: readonly string[]): KnownWord[] =>
    rows(
      sql(`SELECT word, memories FROM words WHERE word IN (SELECT value FROM json_each(?))
        ORDER BY memories`).all(JSON.stringify(words)),
    )

  return {
    change(before, after) {
      const added = JSON.stringify([...after.difference(before)].sort())
      for (const { id, word, memories } of sql(`INSERT INTO words (word, memories)
        SELECT value, 1 FROM json_each(?) WHERE true
        ON CONFLICT (word) DO UPDATE SET memories = memories + 1 RETURNING id, word, memories`).all(added)) {
        if (memories === 1 && hasForms(String(word)))
          sql('INSERT INTO word_parts (rowid, word) VALUES (?, ?)').run(Number(id), String(word))
      }
      const removed = JSON.stringify([...before.difference(after)].sort())
      for (const { id, word, memories } of sql(`UPDATE words SET memories = memories - 1
        WHERE word IN (SELECT value FROM json_each(?)) RETURNING id, word, memories`).all(removed)) {
        if (Number(memories) > 0) continue
        sql('DELETE FROM words WHERE id = ?').run(Number(id))
        if (hasForms(String(word))) sql('DELETE FROM word_parts WHERE rowid = ?').run(Number(id))
      }
    },

    known: named,

    related(word) {
      if (!hasForms(word)) return []
      const bare = withoutArticle(word)
      const forms = bare === undefined ? [word] : [word, bare]
      const found = forms.flatMap(form => [...beginningAlike(form), ...holding(form), ...named(heldBy(form))])
      const distinct = new Map(found.map(known => [known.word, known]))
      distinct.delete(word)
      return [...distinct.values()]
        .map(known => ({ known, far: Math.min(...forms.map(form => distance(form, known.word))) }))
        .filter(({ far }) => Number.isFinite(far))
        .sort((a, b) => a.far - b.far)
        .slice(0, used)
        .map(({ known }) => known)
    },
  }
}

/** The parts of a word that are most of it; of a long one, those long enough to be the words it is made of. */
function heldBy(word: string): string[] {
  if (word.length > longestTakenApart) return []
  const shortest = Math.max(3, Math.min(Math.ceil((word.length * 2) / 3), 6))
  const parts: string[] = []
  for (let length = word.length; length >= shortest; length--)
    for (let start = 0; start + length <= word.length; start++) parts.push(word.slice(start, start + length))
  return parts
}

/** How many letters one word has and the other has not. A part that is not the beginning counts as further away. */
function distance(word: string, other: string): number {
  let alike = 0
  while (alike < word.length && word[alike] === other[alike]) alike++
  const [shorter, longer] = word.length < other.length ? [word, other] : [other, word]
  if (alike >= longer.length * beginning || alike === shorter.length)
    return word.length + other.length - 2 * alike
  return longer.includes(shorter) ? longer.length - shorter.length + ending : Number.POSITIVE_INFINITY
}

const rows = (found: readonly Record<string, unknown>[]): KnownWord[] =>
  found.map(row => ({ word: String(row.word), memories: Number(row.memories) }))
