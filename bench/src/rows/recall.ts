import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { loadConfig } from '@hatchway/host'
import { createLogger } from '../../../packages/host/src/base/logger.ts'
import { createMemoryService } from '../../../packages/host/src/plugins/memory/service.ts'
import { createRandom, type Random } from '../../../packages/testing/src/random.ts'
import { type Contender, interleave } from '../contenders.ts'
import { absent, count, times, timing } from '../format.ts'
import type { Row, RowResult, Setting } from '../row.ts'
import { asFields } from '../shape.ts'
import { pairedRatio } from '../statistics.ts'

const limitMs = 10
const target = `p50 ≤ ${limitMs} ms`
const ownName = 'recall_memories'
const bareName = 'bare FTS5 query'
const wanted = 5

interface Note {
  key: string
  content: string
}

const vocabularySize = 60_000
const charactersSize = 3000
const onsets = 'b br d dr f fl g gr h k kl kr l m n p pr qu r s sch sp st t tr v w z th ch'.split(' ')
const nuclei = 'a e i o u ei au ie ea ou y'.split(' ')
const codas = ['', ...'n r s t l m nd ng st ck x rt ch'.split(' ')]

/** Chooses as languages do: the second most frequent word half as often as the first, the third a third as often. */
const byFrequency = (random: Random, size: number) => {
  const sums = new Float64Array(size)
  let sum = 0
  for (let i = 0; i < size; i++) {
    sum += 1 / (i + 2.7)
    sums[i] = sum
  }
  return () => {
    const at = (random.below(1_000_000_000) / 1_000_000_000) * sum
    let low = 0
    let high = size - 1
    while (low < high) {
      const middle = (low + high) >> 1
      if ((sums[middle] ?? 0) < at) low = middle + 1
      else high = middle
    }
    return low
  }
}

/** Made-up notes of 8 to 52 words, some of them compounds, and one in seven in Chinese characters. */
const writeNotes = (random: Random, size: number): Note[] => {
  const syllable = () => random.pick(onsets) + random.pick(nuclei) + random.pick(codas)
  const words = new Set<string>()
  while (words.size < vocabularySize) {
    const syllables = words.size < 200 ? 1 : words.size < 5000 ? 2 : 2 + random.below(2)
    words.add(Array.from({ length: syllables }, syllable).join(''))
  }
  const list = [...words]
  const chooseWord = byFrequency(random, list.length)
  const chooseCharacter = byFrequency(random, charactersSize)
  const word = () => list[chooseWord()] ?? ''
  const character = () => String.fromCodePoint(0x4e00 + 6 * chooseCharacter())
  return Array.from({ length: size }, (_, index) => {
    const length = 8 + random.below(45)
    const content = random.chance(1 / 7)
      ? Array.from({ length: 2 * length }, () => (random.chance(0.08) ? '，' : character())).join('')
      : Array.from({ length }, () => (random.chance(0.03) ? word() + word() : word())).join(' ')
    return { key: `${word()}-${word()}-${index}`, content }
  })
}

/** One to four words of some note, as frequent as they are in it; two to six characters; or a part of a long word. */
const writeQuery = (random: Random, notes: readonly Note[]): string => {
  const { content } = random.pick(notes)
  const words = content.split(' ')
  if (words.length === 1) {
    const runs = content.split('，').filter(run => run.length >= 2)
    return runs.length === 0 ? content : random.pick(runs).slice(0, 2 + random.below(5))
  }
  const long = words.filter(word => word.length > 10)
  if (random.chance(0.15) && long.length > 0) return random.pick(long).slice(2)
  return Array.from({ length: 1 + random.below(4) }, () => random.pick(words)).join(' ')
}

interface Memories {
  save(note: Note): Promise<unknown>
  recall(query: string): Promise<number>
  close(): Promise<void>
}

/** The service as the daemon has it, with the thread it does its work in. */
const openMemories = async (directory: string): Promise<Memories> => {
  const service = createMemoryService({ directory: join(directory, 'memories'), durability: 'process' })
  const log = createLogger(await loadConfig({ data: directory, cwd: directory, env: {} }))
  const call = async (name: string, input: object) => {
    const tool = service.tools().find(known => known.name === name)
    if (tool?.kind !== 'later') throw new Error(`there is no tool ${name}`)
    return tool.call(input, {
      group: { folder: 'bench', jid: 'bench@hatchway', name: 'Bench', main: false },
      requestId: 'bench',
      signal: new AbortController().signal,
      progress() {},
      log,
      timezone: 'UTC',
    })
  }
  return {
    save: note => call('save_memory', note),
    async recall(query) {
      const { memories } = asFields(await call('recall_memories', { query, limit: wanted }))
      return Array.isArray(memories) ? memories.length : 0
    },
    close: async () => service.stop?.(),
  }
}

const ownContender = (memories: Memories, queries: readonly string[]): Contender => ({
  name: ownName,
  async block(samples) {
    const took: number[] = []
    for (let i = 0; i < samples; i++) {
      const query = queries[i % queries.length] ?? ''
      const start = process.hrtime.bigint()
      const found = await memories.recall(query)
      took.push(Number(process.hrtime.bigint() - start) / 1000)
      if (found === 0) throw new Error(`nothing was found for ${query}`)
    }
    return took
  },
  end: memories.close,
})

/** What one would write first: whole words, any of them, ranked, in this very thread. Finds no Chinese and no parts. */
const bareContender = (directory: string, notes: readonly Note[], queries: readonly string[]): Contender => {
  const database = new DatabaseSync(join(directory, 'bare.db'))
  database.exec(`
    PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -8000;
    CREATE VIRTUAL TABLE notes USING fts5(key, content);
    BEGIN;
  `)
  const insert = database.prepare('INSERT INTO notes (key, content) VALUES (?, ?)')
  for (const { key, content } of notes) insert.run(key, content)
  database.exec('COMMIT')
  const select = database.prepare(`SELECT * FROM notes WHERE notes MATCH ? ORDER BY rank LIMIT ${wanted}`)
  const match = (query: string) =>
    query
      .split(' ')
      .map(word => `"${word}"`)
      .join(' OR ')
  return {
    name: bareName,
    block: async samples =>
      Array.from({ length: samples }, (_, i) => {
        const query = match(queries[i % queries.length] ?? '')
        const start = process.hrtime.bigint()
        select.all(query)
        return Number(process.hrtime.bigint() - start) / 1000
      }),
    end: async () => database.close(),
  }
}

const seed = async (memories: Memories, notes: readonly Note[], say: Setting['say']) => {
  const atOnce = 200
  const begin = performance.now()
  for (let at = 0; at < notes.length; at += atOnce) {
    await Promise.all(notes.slice(at, at + atOnce).map(memories.save))
    if (at > 0 && at % (notes.length / 5) === 0) say(`${count(at)} of ${count(notes.length)} memories saved`)
  }
  return notes.length / ((performance.now() - begin) / 1000)
}

const run = async ({ directory, quick, say }: Setting): Promise<RowResult> => {
  const random = createRandom(4)
  const notes = writeNotes(random, quick ? 20_000 : 100_000)
  const queries = Array.from({ length: quick ? 200 : 500 }, () => writeQuery(random, notes))
  const memories = await openMemories(directory)
  say(`saving ${count(notes.length)} memories in one group`)
  const savesPerSecond = await seed(memories, notes, say)
  const contenders = [ownContender(memories, queries), bareContender(directory, notes, queries)]
  const measured = await interleave(contenders, { rounds: quick ? 3 : 7, samples: queries.length, say })
  for (const contender of contenders) await contender.end()
  const own = measured.get(ownName)
  const bare = measured.get(bareName)
  return {
    lines: [
      {
        what: `recall among ${count(notes.length)} memories`,
        hatchway: own === undefined ? absent : timing(own),
        against: bare === undefined ? bareName : `${bareName} ${timing(bare)}`,
        ratio: own && bare ? times(pairedRatio(own.medians, bare.medians)) : absent,
        target,
        ...(own === undefined ? {} : { met: own.p50 <= limitMs * 1000 }),
      },
    ],
    figures: {
      memories: notes.length,
      queries: queries.length,
      savesPerSecond,
      ...Object.fromEntries(measured),
    },
    missing: [],
  }
}

export const recall: Row = { name: 'recall', title: 'finding a memory among many', run }
