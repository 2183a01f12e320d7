import { expect, test } from 'vitest'
import { boundAnswer, mostItems } from './bounds.ts'
import { lend, script } from './testing/rig.ts'

const many = Array.from({ length: mostItems + 1 }, () => 1)
const bounded = (result: object) => {
  const message = { jsonrpc: '2.0', id: 7, result }
  boundAnswer(message)
  return message
}

test.each([
  [{ content: many }],
  [{ contents: many }],
  [{ messages: many }],
  [{ tools: many }],
  [{ content: [{ type: 'text', text: 'a', annotations: { audience: many } }] }],
  [{ serverInfo: { icons: many } }],
])(
  'an answer with too many items is replaced by an error before anything looks into it (case %#)',
  result => {
    expect(bounded(result)).toEqual({
      jsonrpc: '2.0',
      id: 7,
      error: { code: expect.any(Number), message: 'too large' },
    })
  },
)

test.each([
  [{ content: many.slice(1) }],
  [{ content: [], structuredContent: { rows: many } }],
  [{ content: [{ type: 'text', text: 'a', _meta: { rows: many } }], _meta: { rows: many } }],
  [{ tools: [{ name: 'a', inputSchema: { enum: many } }] }],
])('what has few items, and what no schema looks into, stays (case %#)', result => {
  expect(bounded(result)).toEqual({ jsonrpc: '2.0', id: 7, result })
})

test('a tool that answers with a million items fails, and the next call is answered', async () => {
  const rig = lend(
    script(`
      const line = (id, result) => console.log('{"jsonrpc":"2.0","id":' + id + ',"result":' + result + '}')
      require('node:readline').createInterface({ input: process.stdin }).on('line', text => {
        const { id, method, params } = JSON.parse(text)
        if (id === undefined) return
        if (method === 'initialize') line(id, JSON.stringify({
          protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'm', version: '1' } }))
        else if (method === 'tools/list') line(id, JSON.stringify({ tools: ['many', 'few'].map(name => ({
          name, inputSchema: { type: 'object' } })) }))
        else if (params?.name === 'many') line(id, '{"content":[' + '1,'.repeat(1e6) + '1]}')
        else line(id, '{"content":[{"type":"text","text":"few"}]}')
      })`),
  )
  await rig.up()
  await expect(rig.call('odd_many')).rejects.toMatchObject({ code: 'answer_too_large' })
  expect(await rig.call('odd_few')).toMatchObject({ content: [{ text: 'few' }] })
})
