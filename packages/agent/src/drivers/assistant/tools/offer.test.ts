import { expect, test } from 'vitest'
import { tokensIn, tokensOfTools } from '../window.ts'
import { offerOf } from './offer.ts'
import { type AssistantTool, said } from './types.ts'

const never = new AbortController().signal

const toolOf = (name: string, words = 20): AssistantTool => ({
  name,
  description: `Does what ${name} is for. ${'It is told at length. '.repeat(words)}`,
  schema: {
    type: 'object',
    properties: {
      title: { type: 'string', description: 'What it is called. Any text.' },
      options: {
        type: 'array',
        items: {
          type: 'object',
          properties: { description: { type: 'string', description: 'Long.'.repeat(50) } },
        },
      },
    },
    required: ['title'],
  },
  call: async args => said(`${name} got ${JSON.stringify(args)}`),
})
const many = (count: number) => Array.from({ length: count }, (_, i) => toolOf(`service_number_${i}`))
const sizeOf = ({ definitions, list }: ReturnType<typeof offerOf>) =>
  tokensOfTools(definitions) + tokensIn(list)

test('with room for it, each tool is shown as it is', () => {
  const tools = many(3)
  expect(offerOf([], tools, 100_000).definitions).toEqual(
    tools.map(({ name, description, schema }) => ({ name, description, schema })),
  )
})

test('with less room, tools lose words but no argument', () => {
  const { definitions, list } = offerOf([toolOf('shell')], many(3), 700)
  expect(list).toBe('')
  expect(definitions.map(({ name }) => name)).toEqual([
    'shell',
    'service_number_0',
    'service_number_1',
    'service_number_2',
    'tool_help',
  ])
  expect(definitions[0]).toEqual({
    name: 'shell',
    description: 'Does what shell is for.',
    schema: {
      type: 'object',
      properties: {
        title: { type: 'string', description: 'What it is called.' },
        options: {
          type: 'array',
          items: { type: 'object', properties: { description: { type: 'string' } } },
        },
      },
      required: ['title'],
    },
  })
})

test.each([30, 60, 400])('of %i tools, all can be found and called in little room', async count => {
  const offer = offerOf([toolOf('shell')], many(count), 1000)
  expect(sizeOf(offer)).toBeLessThanOrEqual(1000)
  expect(offer.definitions[0]?.name).toBe('shell')
  const last = `service_number_${count - 1}`
  const call = offer.tools.get('call_tool') ?? expect.fail()
  const help = offer.tools.get('tool_help') ?? expect.fail()
  const textOf = async (answer: ReturnType<typeof call.call>) => JSON.stringify((await answer).parts)
  expect(await textOf(call.call({ name: last, arguments: { title: 'a' } }, never))).toContain(`${last} got`)
  expect(await textOf(call.call({ name: last, arguments: '{"title":"a"}' }, never))).toContain('title')
  expect(await textOf(help.call({ name: last }, never))).toContain('It is told at length.')
  expect(await textOf(help.call({}, never))).toContain(last)
  expect(await call.call({ name: 'nothing' }, never)).toMatchObject({ isError: true })
})

test('names are what every API takes, and no service takes the place of a tool of ours', async () => {
  const { definitions, tools } = offerOf(
    [toolOf('shell')],
    [toolOf('shell'), toolOf('mcp:files/read')],
    100_000,
  )
  expect(definitions.map(({ name }) => name)).toEqual(['shell', 'service_shell', 'mcp_files_read'])
  expect(tools.get('mcp_files_read')).toBeDefined()
})
