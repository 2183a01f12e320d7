import { expect, test } from 'vitest'
import { flagsOf, helpOf, parseFlags } from './flags.ts'

const flags = flagsOf({
  type: 'object',
  properties: {
    text: { type: 'string', description: 'What to say.' },
    task_id: { type: 'string' },
    count: { type: 'integer' },
    urgent: { type: 'boolean' },
    mode: { enum: ['a', 'b'] },
    attachments: { type: 'array', items: { type: 'string' } },
    questions: { type: 'array', items: { type: 'object' } },
    data: {},
    json: { type: 'string' },
    'not a flag': { type: 'string' },
  },
  required: ['text'],
})
const parse = (...words: string[]) => parseFlags(flags, words, async () => 'from standard input')

test('flags become arguments of the kinds that the schema says', async () => {
  expect(
    await parse(
      ...['--text', 'hello there', '--task-id=7', '--count', '3', '--urgent', '--mode', 'a'],
      ...['--attachments', 'a.txt', '--attachments', 'b.txt', '--questions', '[{"q":1}]', '--data', 'null'],
    ),
  ).toEqual({
    args: {
      ...{ text: 'hello there', task_id: '7', count: 3, urgent: true, mode: 'a' },
      ...{ attachments: ['a.txt', 'b.txt'], questions: [{ q: 1 }], data: null },
    },
  })
  expect(await parse('--text=-5', '--task_id', '8', '--urgent=false')).toEqual({
    args: { text: '-5', task_id: '8', urgent: false },
  })
  expect(await parse('--text', '')).toEqual({ args: { text: '' } })
})

test('all of them may come as JSON, and either from standard input; a flag counts more', async () => {
  expect(await parse('--json', '{"text":"a","json":"b"}', '--text', '-')).toEqual({
    args: { text: 'from standard input', json: 'b' },
  })
  expect(await parse('--text', 'x', '--json', '-')).toMatchObject({
    problem: expect.stringContaining('JSON'),
  })
  expect(await parse('--json', '{"__proto__":{"text":1}}')).toEqual({ problem: '--text must be given' })
})

test.each([
  [['--text', 'a', '--colour', 'red'], "Unknown option '--colour'"],
  [['--text', 'a', 'b'], "Unexpected argument 'b'"],
  [['--text', 'a', '--text', 'b'], '--text is given more than once'],
  [['--text', '-x'], 'is given as --NAME=VALUE'],
  [['--text', 'a', '--count', 'many'], '--count takes a number, not "many"'],
  [['--text', 'a', '--data', '{'], 'not valid JSON'],
  [['--json', '[]'], '--json takes a JSON object'],
  [['--count', '1'], '--text must be given'],
  [[], '--text must be given'],
])('%j is refused with a reason', async (words, problem) => {
  expect(await parse(...words)).toEqual({ problem: expect.stringContaining(problem) })
})

test('the help names every flag, with what it takes', async () => {
  expect(await parse('--help')).toEqual({ ask: 'help' })
  const help = helpOf(flags)
  expect(help).toContain('  --text TEXT (required)\n      What to say.')
  expect(help).toContain('  --mode a|b')
  expect(help).toContain('  --attachments TEXT (may be given again)')
  expect(help).not.toMatch(/--json|not a flag/)
})
