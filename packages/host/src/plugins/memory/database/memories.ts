import type { Connection } from '../../../store/connection.ts'
import { createRecall } from './recall.ts'
import { Refused } from './refused.ts'
import type { MemoryLimits, MemoryRequest } from './types.ts'
import { createVocabulary } from './vocabulary.ts'
import { alike, wordsAskedFor, wordsIn } from './words.ts'

/** What can be done with one group's memories. Nothing is written by a request that is refused. */
export type Memories = (request: MemoryRequest) => object

/** As much as an answer may hold of memories, as JSON; the first is always in it. */
const answerBytes = 524_288

export function createMemories({ sql }: Pick<Connection, 'sql'>, limits: MemoryLimits): Memories {
  const vocabulary = createVocabulary({ sql })
  const recall = createRecall({ sql }, vocabulary)

  const stored = (key: string) => {
    const row = sql('SELECT id, created_at, content FROM memories WHERE key = ?').get(key)
    return row && { id: Number(row.id), createdAt: Number(row.created_at), content: String(row.content) }
  }
  const totals = () => {
    const row = sql('SELECT memories, bytes FROM totals').get()
    return { memories: Number(row?.memories), bytes: Number(row?.bytes) }
  }
  const changeTotals = (memories: number, bytes: number) =>
    sql('UPDATE totals SET memories = memories + ?, bytes = bytes + ?').run(memories, bytes)

  function save({ key, content, category, at }: Extract<MemoryRequest, { do: 'save' }>): object {
    const before = stored(key)
    const size = bytesOf(key, content)
    const grows = size - (before ? bytesOf(key, before.content) : 0)
    const has = totals()
    if (!before && has.memories >= limits.perGroup)
      throw new Refused(
        'quota_exceeded',
        `This group has ${has.memories} memories, as many as it may have. Forget some with forget_memory, or save under a key that exists already.`,
      )
    if (grows > 0 && has.bytes + grows > limits.groupBytes)
      throw new Refused(
        'quota_exceeded',
        `The memories of this group would be larger than ${limits.groupBytes} bytes together. Forget some with forget_memory, or save less.`,
      )
    const keyWords = wordsIn(key)
    const contentWords = wordsIn(content)
    const row = sql(`INSERT INTO memories (key, category, category_key, created_at, updated_at, content)
      VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET category = excluded.category,
      category_key = excluded.category_key, updated_at = excluded.updated_at, content = excluded.content
      RETURNING id`).get(key, category, alike(category), at, at, content)
    const id = Number(row?.id)
    if (before) sql('DELETE FROM word_index WHERE rowid = ?').run(id)
    sql('INSERT INTO word_index (rowid, key, content) VALUES (?, ?, ?)').run(
      id,
      keyWords.join(' '),
      contentWords.join(' '),
    )
    vocabulary.change(
      new Set(before ? [...keyWords, ...wordsIn(before.content)] : []),
      new Set([...keyWords, ...contentWords]),
    )
    changeTotals(before ? 0 : 1, grows)
    return {
      key,
      category,
      created_at: time(before?.createdAt ?? at),
      updated_at: time(at),
      replaced: before !== undefined,
    }
  }

  function forget(key: string): object {
    const before = stored(key)
    if (!before) return { key, forgotten: false }
    sql('DELETE FROM memories WHERE id = ?').run(before.id)
    sql('DELETE FROM word_index WHERE rowid = ?').run(before.id)
    vocabulary.change(new Set([...wordsIn(key), ...wordsIn(before.content)]), new Set())
    changeTotals(-1, -bytesOf(key, before.content))
    return { key, forgotten: true }
  }

  /** One more than can be given tells whether there are more. */
  const newest = (category: string | undefined, limit: number, offset: number) =>
    category === undefined
      ? sql('SELECT * FROM memories ORDER BY updated_at DESC, id DESC LIMIT ? OFFSET ?').all(
          limit + 1,
          offset,
        )
      : sql(`SELECT * FROM memories WHERE category_key = ?
          ORDER BY updated_at DESC, id DESC LIMIT ? OFFSET ?`).all(category, limit + 1, offset)

  const count = (category: string | undefined) =>
    category === undefined
      ? totals().memories
      : Number(sql('SELECT count(*) AS count FROM memories WHERE category_key = ?').get(category)?.count)

  return request => {
    switch (request.do) {
      case 'save':
        return save(request)
      case 'forget':
        return forget(request.key)
      case 'recall': {
        const { query, limit } = request
        const category = request.category === undefined ? undefined : alike(request.category)
        if (wordsAskedFor(query).length === 0) return fitting(newest(category, limit, 0), limit)
        const ids = recall(query, category, limit + 1)
        const found = ids
          .map(id => sql('SELECT * FROM memories WHERE id = ?').get(id))
          .filter(row => row !== undefined)
        return fitting(found, limit)
      }
      case 'list': {
        const category = request.category === undefined ? undefined : alike(request.category)
        return {
          ...fitting(newest(category, request.limit, request.offset), request.limit),
          total: count(category),
        }
      }
    }
  }
}

function fitting(rows: readonly Record<string, unknown>[], limit: number) {
  const memories: object[] = []
  let bytes = 0
  for (const row of rows.slice(0, limit)) {
    const memory = {
      key: String(row.key),
      content: String(row.content),
      category: String(row.category),
      created_at: time(Number(row.created_at)),
      updated_at: time(Number(row.updated_at)),
    }
    bytes += Buffer.byteLength(JSON.stringify(memory))
    if (memories.length > 0 && bytes > answerBytes) break
    memories.push(memory)
  }
  return { memories, more: memories.length < rows.length }
}

const time = (at: number): string => new Date(at).toISOString()
const bytesOf = (key: string, content: string): number => Buffer.byteLength(key) + Buffer.byteLength(content)
