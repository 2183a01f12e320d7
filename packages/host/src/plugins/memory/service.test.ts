import { mkdtempSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openMemory } from './testing/open.ts'

test('a memory is saved, replaced under its key, recalled, listed and forgotten', async () => {
  let clock = Date.parse('2026-05-01T10:00:00Z')
  const { group } = openMemory({ now: () => new Date(clock) })
  const agent = group('a')
  expect(await agent.save('anna-birthday', 'Anna was born on 3 May.', 'People')).toEqual({
    key: 'anna-birthday',
    category: 'People',
    created_at: '2026-05-01T10:00:00.000Z',
    updated_at: '2026-05-01T10:00:00.000Z',
    replaced: false,
  })
  clock += 60_000
  await agent.save('tea', 'No sugar.')
  clock += 60_000
  expect(await agent.save('anna-birthday', 'Anna was born on 4 June.', 'people')).toMatchObject({
    created_at: '2026-05-01T10:00:00.000Z',
    updated_at: '2026-05-01T10:02:00.000Z',
    replaced: true,
  })
  const anna = {
    key: 'anna-birthday',
    content: 'Anna was born on 4 June.',
    category: 'people',
    created_at: '2026-05-01T10:00:00.000Z',
    updated_at: '2026-05-01T10:02:00.000Z',
  }
  expect(await agent.recall('birthday of Anna')).toEqual({ memories: [anna], more: false })
  expect(await agent.keys('May')).toEqual([])
  expect(await agent.list()).toMatchObject({
    memories: [anna, { key: 'tea', category: 'core' }],
    total: 2,
    more: false,
  })
  expect(await agent.forget('anna-birthday')).toEqual({ key: 'anna-birthday', forgotten: true })
  expect(await agent.forget('anna-birthday')).toEqual({ key: 'anna-birthday', forgotten: false })
  expect(await agent.keys('Anna')).toEqual([])
  expect((await agent.list()).total).toBe(1)
})

test('a category narrows what is recalled and listed, whatever its case', async () => {
  const { group } = openMemory()
  const agent = group('a')
  for (let i = 0; i < 8; i++) await agent.save(`w${i}`, `shared word ${i}`, 'Work')
  await agent.save('home', 'shared word at home', 'home')
  expect(await agent.keys('shared', { category: 'HOME' })).toEqual(['home'])
  expect(await agent.recall('shared', { category: 'work' })).toMatchObject({
    memories: { length: 5 },
    more: true,
  })
  expect(await agent.keys('shared', { category: 'work', limit: 1000 })).toHaveLength(8)
  expect(await agent.keys('shared', { category: 'nothing' })).toEqual([])
  expect(await agent.list({ category: ' work ', limit: 3, offset: 7 })).toMatchObject({
    memories: [{ key: 'w0' }],
    total: 8,
    more: false,
  })
  // Some clients send an empty text for an argument that was left out.
  expect((await agent.list({ category: '' })).total).toBe(9)
  await agent.save('w0', 'shared word, moved', 'home')
  expect((await agent.list({ category: 'work' })).total).toBe(7)
})

test('two groups see nothing of each other', async () => {
  const { group, directory } = openMemory()
  const one = group('one')
  const other = group('other')
  await one.save('secret', 'The safe opens with 4711.')
  await other.save('secret', 'Nothing here.')
  await other.forget('secret')
  expect(await other.keys('safe')).toEqual([])
  expect(await other.list()).toMatchObject({ total: 0 })
  expect(await one.keys('safe')).toEqual(['secret'])
  expect(
    readdirSync(directory)
      .filter(name => name.endsWith('.db'))
      .sort(),
  ).toEqual(['one.db', 'other.db'])
})

const hostile = [
  '"',
  '""',
  'tea" OR key:"',
  'tea OR coffee',
  'NEAR(tea sugar, 1)',
  'tea*',
  '^tea',
  'content : tea',
  '{key content} : tea',
  '- key : tea',
  '(((',
  'tea AND NOT',
  "'; DROP TABLE memories; --",
  '\0tea\0',
  'tea\0" OR "1',
  '%_\\',
  '\uD83D',
  '\u202Etea',
  'tea + sugar',
]

test('a query is text and nothing else, whatever is in it', async () => {
  const { group } = openMemory()
  const agent = group('a')
  await agent.save('drink', 'tea without sugar')
  await agent.save('other', 'Coffee is for guests.')
  for (const query of hostile) {
    const keys = await agent.keys(query)
    const isFound = query.includes('tea') || !/[a-z]/i.test(query)
    expect({ query, isFound: keys.includes('drink') }).toEqual({ query, isFound })
  }
  expect(await agent.list()).toMatchObject({ total: 2 })
})

test('keys and contents of any characters come back as they were saved', async () => {
  const { group } = openMemory()
  const agent = group('a')
  const content = `\0 "quoted" 'it''s' \u0001 \u{1F600} \u2028 ${'x'.repeat(1000)} end\0`
  await agent.save('a"b\'; --', content)
  expect((await agent.recall('quoted')).memories[0]).toMatchObject({ key: 'a"b\'; --', content })
  // One key, whichever way its accent was typed.
  await agent.save('café', 'one')
  expect(await agent.save('cafe\u0301', 'two')).toMatchObject({ replaced: true })
  expect(await agent.forget(' café ')).toEqual({ key: 'café', forgotten: true })
})

test('a query without words gives the newest', async () => {
  const { group } = openMemory()
  const agent = group('a')
  for (let i = 0; i < 7; i++) await agent.save(`k${i}`, 'text')
  expect(await agent.keys('*')).toEqual(['k6', 'k5', 'k4', 'k3', 'k2'])
})

test('beyond the limits a memory is refused, with what to do', async () => {
  const { group } = openMemory({ limits: { perGroup: 3, contentBytes: 20, groupBytes: 50 } })
  const agent = group('a')
  await expect(agent.save('k', 'ä'.repeat(11))).rejects.toThrow(
    /invalid_field content: is larger than 20 bytes/,
  )
  await expect(agent.save('k'.repeat(257), 'x')).rejects.toThrow(/invalid_field key/)
  await expect(agent.save('  ', 'x')).rejects.toThrow(/invalid_field key/)
  await expect(agent.save('k', '')).rejects.toThrow(/invalid_field content/)
  await expect(agent.save('k', 'x', 'c'.repeat(65))).rejects.toThrow(/invalid_field category/)
  await agent.save('1', 'x'.repeat(20))
  await agent.save('2', 'x'.repeat(20))
  await expect(agent.save('3', 'x'.repeat(20))).rejects.toMatchObject({
    code: 'quota_exceeded',
    message: expect.stringMatching(/larger than 50 bytes.*forget_memory/),
  })
  await agent.save('3', 'x')
  await expect(agent.save('4', 'x')).rejects.toMatchObject({
    code: 'quota_exceeded',
    message: expect.stringMatching(/has 3 memories.*forget_memory/),
  })
  await agent.save('3', 'another')
  await expect(agent.save('3', 'x'.repeat(20))).rejects.toMatchObject({ code: 'quota_exceeded' })
  expect((await agent.recall('another')).memories).toHaveLength(1)
  await agent.forget('1')
  await agent.save('4', 'x'.repeat(20))
  expect((await agent.list()).total).toBe(3)
})

test('an answer is bounded, however long the memories are', async () => {
  const { group } = openMemory()
  const agent = group('a')
  // NUL is the longest character in JSON.
  await Promise.all(Array.from({ length: 60 }, (_, i) => agent.save(`k${i}`, `long${'\0'.repeat(16_000)}`)))
  const listed = await agent.list({ limit: 500 })
  expect(JSON.stringify(listed).length).toBeLessThan(600_000)
  expect(listed).toMatchObject({ total: 60, more: true })
  expect(listed.memories.length).toBeGreaterThan(3)
  const recalled = await agent.recall('long', { limit: 50 })
  expect(JSON.stringify(recalled).length).toBeLessThan(600_000)
  expect(recalled.more).toBe(true)
})

test('many saves of one key at once leave one memory, the last', async () => {
  const { group } = openMemory()
  const agent = group('a')
  const saved = await Promise.all(
    Array.from({ length: 500 }, (_, i) => agent.save('race', `attempt number${i}`)),
  )
  expect(saved.filter(({ replaced }) => !replaced)).toHaveLength(1)
  expect(new Set(saved.map(({ created_at }) => created_at)).size).toBe(1)
  expect(await agent.list()).toMatchObject({ total: 1, memories: [{ content: 'attempt number499' }] })
  expect(await agent.keys('number499')).toEqual(['race'])
  // Words that only replaced contents had are gone; the closest there is, is another number.
  expect(await agent.keys('attempt')).toEqual(['race'])
  await agent.forget('race')
  expect(await agent.keys('number499')).toEqual([])
})

test('requests of many groups at once are all answered, each from its own', async () => {
  const { group } = openMemory()
  const agents = Array.from({ length: 40 }, (_, i) => group(`g${i}`))
  await Promise.all(
    agents.flatMap((agent, i) =>
      Array.from({ length: 10 }, (_, j) => agent.save(`k${j}`, `owner${i} memory${j}`)),
    ),
  )
  const found = await Promise.all(agents.map((agent, i) => agent.recall(`owner${i}`, { limit: 50 })))
  expect(found.map(({ memories }) => memories.length)).toEqual(agents.map(() => 10))
  expect(await agents[3]?.keys('owner4')).toEqual(await agents[3]?.keys('owner3'))
})

test('what is taken back while it waits is not done', async () => {
  const { group } = openMemory()
  const agent = group('a')
  const abort = new AbortController()
  const first = Array.from({ length: 40 }, (_, i) => agent.save(`k${i}`, 'text'))
  const last = agent.call('save_memory', { key: 'last', content: 'too late' }, abort.signal)
  abort.abort(new Error('taken back'))
  await expect(last).rejects.toThrow('taken back')
  await Promise.all(first)
  expect(await agent.keys('late')).toEqual([])
  await expect(agent.call('list_memories', {}, AbortSignal.abort(new Error('no')))).rejects.toThrow('no')
})

test('memories outlive the service', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'hatchway-memory-'))
  const before = openMemory({ directory, durability: 'full' })
  await before.group('a').save('k', 'kept for later')
  await before.service.stop?.()
  await expect(before.group('a').list()).rejects.toThrow('The memories are closed.')
  expect(readdirSync(directory)).toEqual(['a.db', 'a.db-journal'])
  const after = openMemory({ directory })
  expect(await after.group('a').keys('later')).toEqual(['k'])
})

test('what the tools are is told in full', () => {
  const { service } = openMemory()
  const tools = service.tools()
  expect(tools.map(({ name }) => name)).toEqual([
    'save_memory',
    'recall_memories',
    'forget_memory',
    'list_memories',
  ])
  for (const tool of tools) {
    expect(tool).toMatchObject({ kind: 'later', repeatable: true, groups: 'all', answers: 'facts' })
    expect(Object.keys(tool.labels)).toHaveLength(4)
    for (const field of Object.values(Object(tool.inputSchema.properties)))
      expect(field).toHaveProperty('description')
  }
  expect(tools[0]?.inputSchema).toMatchObject({ required: ['key', 'content'] })
  expect(tools[1]?.inputSchema).toMatchObject({ required: ['query'] })
})
