import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createRandom } from '../../../../../testing/src/random.ts'
import { openMemoryFile } from './file.ts'
import { createMemories } from './memories.ts'
import { wordsIn } from './words.ts'

function open() {
  const directory = mkdtempSync(join(tmpdir(), 'hatchway-memory-'))
  const file = openMemoryFile({ directory, durability: 'process' }, { folder: 'a', jid: 'a@chat' })
  onTestFinished(() => {
    file.close()
    rmSync(directory, { recursive: true })
  })
  const limits = { perGroup: 1000, contentBytes: 10_000, groupBytes: 1_000_000 }
  return { directory, file, memories: createMemories(file, limits) }
}

test.each([1, 2, 3])('after any saves and removals all tables tell the same (seed %i)', seed => {
  const { file, memories } = open()
  const random = createRandom(seed)
  const some = [
    'tea',
    'Versicherung',
    'versicherungen',
    '医疗保险',
    'ประกัน',
    'كتاب',
    '🍕',
    'café',
    'user',
    '42',
  ]
  const text = () => Array.from({ length: random.below(6) }, () => random.pick(some)).join(' ')
  for (let i = 0; i < 400; i++) {
    const key = `key ${random.below(25)} ${random.pick(['tea', 'x'])}`
    file.atomically(() =>
      random.chance(0.3)
        ? memories({ do: 'forget', key })
        : memories({ do: 'save', key, content: text(), category: 'c', at: i }),
    )
  }

  const rows = file.sql('SELECT id, key, content FROM memories').all()
  const expected = new Map<string, number>()
  let bytes = 0
  for (const { key, content } of rows) {
    bytes += Buffer.byteLength(String(key)) + Buffer.byteLength(String(content))
    for (const word of new Set([...wordsIn(String(key)), ...wordsIn(String(content))]))
      expected.set(word, (expected.get(word) ?? 0) + 1)
  }
  const counted = file.sql('SELECT word, memories FROM words').all()
  expect(new Map(counted.map(({ word, memories: count }) => [word, count]))).toEqual(expected)
  expect({ ...file.sql('SELECT * FROM totals').get() }).toEqual({ memories: rows.length, bytes })
  for (const [word, count] of expected) {
    const found = file
      .sql('SELECT count(*) AS count FROM word_index WHERE word_index MATCH ?')
      .get(`"${word}"`)
    expect({ word, count: found?.count }).toEqual({ word, count })
  }
  const parts = file.sql('SELECT rowid AS id FROM word_parts ORDER BY rowid').all()
  const words = file
    .sql("SELECT id FROM words WHERE word GLOB '[a-z0-9ك]*' AND length(word) > 2 ORDER BY id")
    .all()
  expect(parts.map(({ id }) => id)).toEqual(words.map(({ id }) => id))
})

test('a batch that fails leaves nothing behind', () => {
  const { file, memories } = open()
  expect(() =>
    file.atomically(() => {
      memories({ do: 'save', key: 'k', content: 'half done', category: 'c', at: 1 })
      throw new Error('stopped')
    }),
  ).toThrow('stopped')
  expect(memories({ do: 'list', limit: 5, offset: 0 })).toEqual({ memories: [], more: false, total: 0 })
  expect(memories({ do: 'recall', query: 'half', limit: 5 })).toEqual({ memories: [], more: false })
  expect(file.sql('SELECT count(*) AS count FROM words').get()?.count).toBe(0)
})

test('no file of it is mapped into memory, where a full disk would end the whole process', () => {
  const { directory, file, memories } = open()
  file.atomically(() => memories({ do: 'save', key: 'tea', content: 'green', category: 'c', at: 1 }))
  expect(readdirSync(directory).filter(name => name.endsWith('-shm'))).toEqual([])
  const maps = '/proc/self/maps'
  if (existsSync(maps)) expect(readFileSync(maps, 'utf8')).not.toContain(directory)
})
