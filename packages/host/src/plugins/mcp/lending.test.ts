import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { lendingOf } from './lending.ts'
import { type LentServer, lentServersSchema } from './settings.ts'

const settings = (more: object = {}): LentServer => {
  const parsed = lentServersSchema.parse({ git: { command: 'git-server', ...more } }).git
  if (!parsed) throw new Error('no server')
  return parsed
}
const tool = (name: string, more: object = {}) => ({ name, inputSchema: { type: 'object' }, ...more })
const namesOf = (...listed: unknown[]) => lendingOf('git', settings(), listed).tools.map(({ name }) => name)
const problemsOf = (...listed: unknown[]) => lendingOf('git', settings(), listed).problems

test('a tool keeps its origin while keys and lists change, and is another one with another program', () => {
  const originOf = (server: object, remote = 'read') =>
    lendingOf('git', settings({ ...server, tools: { [remote]: { name: 'read' } } }), [tool(remote)]).tools[0]
      ?.origin
  const before = originOf({ env: { TOKEN: 'one' } })
  expect(before).toBeTypeOf('string')
  expect(originOf({ env: { TOKEN: 'two' }, groups: 'all' })).toBe(before)
  expect(originOf({ env: ['TOKEN'], command: ['git-server'], args: [] })).toBe(before)
  const others = [
    originOf({ env: ['TOKEN'], command: 'another-server' }),
    originOf({ env: ['TOKEN'], args: ['/srv'] }),
    originOf({ env: ['TOKEN'], cwd: '/srv' }),
    originOf({ env: ['TOKEN', 'LD_PRELOAD'] }),
    originOf({ env: ['TOKEN'] }, 'remove'),
    originOf({ command: undefined, url: 'https://git.example/mcp' }),
    originOf({ command: undefined, url: 'https://other.example/mcp' }),
    originOf({ command: undefined, url: 'https://git.example/mcp', headers: { 'x-tenant': 'a' } }),
  ]
  expect(new Set([before, ...others]).size).toBe(others.length + 1)
})

describe('names', () => {
  test('begin with the server and hold nothing that a model or a client cannot take', () => {
    expect(namesOf(tool('read'), tool('repo.list/all'), tool('größe'))).toEqual([
      'git_read',
      'git_repo_list_all',
      'git_gr__e',
    ])
  })

  test('that are too long, without a letter, or taken are left out with a word about it', () => {
    const long = 'x'.repeat(97)
    expect(
      namesOf(tool('a.b'), tool('a_b'), tool('a.b'), tool('日本'), tool(long), tool('x'.repeat(96))),
    ).toEqual(['git_a_b', `git_${'x'.repeat(96)}`])
    const problems = problemsOf(tool('a.b'), tool('a_b'), tool('a.b'), tool('日本'), tool(long))
    expect(problems).toEqual([
      '"a_b" would be called git_a_b, as another one; give it a name in the configuration.',
      '"a.b" is listed twice; the first one counts.',
      '"日本" has a name that cannot be shown; give it one in the configuration.',
      `"${long}" has a name that cannot be shown; give it one in the configuration.`,
    ])
  })

  test('can be given', () => {
    const chosen = settings({ tools: { 日本: { name: 'japan' } } })
    expect(lendingOf('git', chosen, [tool('日本'), tool('other')]).tools).toMatchObject([
      { name: 'japan', remoteName: '日本' },
    ])
  })

  test('that every object has do no harm', () => {
    const own = settings({ tools: { toString: {} } })
    expect(lendingOf('git', own, [tool('constructor'), tool('toString')]).tools).toMatchObject([
      { name: 'git_toString', groups: 'main' },
    ])
    expect(namesOf(tool('__proto__'), tool('hasOwnProperty'))).toEqual([
      'git___proto__',
      'git_hasOwnProperty',
    ])
  })
})

describe('limits', () => {
  test('closed unless it is opened, unknown unless it is labelled, once unless it says otherwise', () => {
    const [lent] = lendingOf('git', settings(), [tool('push')]).tools
    expect(lent).toMatchObject({
      groups: 'main',
      labels: {},
      repeatable: false,
      timeoutMs: 120_000,
      answers: 'content',
    })
  })

  test('words are cut, and not through a character', () => {
    const [lent] = lendingOf('git', settings(), [
      tool('a', { description: '😀'.repeat(5000), title: 'T'.repeat(500) }),
    ]).tools
    expect(lent?.description.length).toBeLessThanOrEqual(4096)
    expect(lent?.description.isWellFormed()).toBe(true)
    expect(lent?.title.length).toBe(200)
  })

  test('a schema that is too large or too deep costs the tool, an output schema only itself', () => {
    const deep = (depth: number): object => JSON.parse(`${'{"not":'.repeat(depth)}{}${'}'.repeat(depth)}`)
    const large = { type: 'object', description: 'x'.repeat(70_000) }
    const { tools, problems } = lendingOf('git', settings(), [
      tool('large', { inputSchema: large }),
      tool('deep', { inputSchema: { type: 'object', ...deep(50_000) } }),
      tool('wide', { inputSchema: { type: 'object', required: Array(1_000_000).fill('') } }),
      tool('out', { outputSchema: large }),
    ])
    expect(tools).toHaveLength(1)
    expect(tools[0]?.outputSchema).toBeUndefined()
    expect(problems).toHaveLength(4)
  })

  test('all together are not more than an agent should be given', () => {
    const schema = { type: 'object', description: 'x'.repeat(60_000) }
    const listed = Array.from({ length: 100 }, (_, at) => tool(`t${at}`, { inputSchema: schema }))
    const { tools, problems } = lendingOf('git', settings(), listed)
    expect(JSON.stringify(tools).length).toBeLessThan(1_100_000)
    expect(problems[0]).toContain('does not fit')
  })

  test('two hundred tools are enough', () => {
    const listed = Array.from({ length: 300 }, (_, at) => tool(`t${at}`))
    const { tools, problems } = lendingOf('git', settings(), listed)
    expect(tools).toHaveLength(200)
    expect(problems).toEqual(['Only the first 200 tools are lent; choose with `tools` in the configuration.'])
    const last = lendingOf('git', settings({ tools: ['t299'] }), listed)
    expect(last).toMatchObject({ tools: [{ name: 'git_t299' }], problems: [] })
  })

  test('many problems are counted, not told', () => {
    const { problems } = lendingOf('git', settings(), Array(500).fill({ name: 'broken' }))
    expect(problems).toHaveLength(11)
    expect(problems.at(-1)).toBe('And 490 more of the kind.')
  })

  test('one odd tool does not cost the others, whatever a server lists', () => {
    expect(
      namesOf(
        null,
        'x',
        { name: 1 },
        { name: 'a' },
        tool('b', { annotations: 7, title: {}, description: [] }),
        tool('c'),
      ),
    ).toEqual(['git_b', 'git_c'])
    fc.assert(
      fc.property(fc.array(fc.jsonValue()), listed => {
        expect(lendingOf('git', settings(), [...listed, tool('good')]).tools.at(-1)?.name).toBe('git_good')
      }),
    )
  })
})
