import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createSentTexts } from './sent-texts.ts'

const event = (value: object) => `event: x\ndata: ${JSON.stringify(value)}\n\n`
const call = (index: number, name: string, input: object) =>
  [
    event({
      type: 'content_block_start',
      index,
      content_block: { type: 'tool_use', id: 't', name, input: {} },
    }),
    ...JSON.stringify(input)
      .split(/(?<=.)(?=.)/su)
      .map(partial_json =>
        event({ type: 'content_block_delta', index, delta: { type: 'input_json_delta', partial_json } }),
      ),
    event({ type: 'content_block_stop', index }),
  ].join('')

test('a stream in pieces of any size tells what is sent with the tool, and nothing else', () => {
  const answer = Buffer.from(
    [
      event({ type: 'message_start', message: { model: 'm' } }),
      event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
      event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'send_message' } }),
      event({ type: 'content_block_stop', index: 0 }),
      call(1, 'mcp__mdclaw__send_message', { text: ' héllo\n"x" ' }),
      call(2, 'Bash', { text: 'not this' }),
      call(3, 'not_send_message_at_all', { text: 'nor this' }),
      call(4, 'send_message', { text: 3 }),
      event({ type: 'message_delta', delta: { stop_reason: 'tool_use' } }),
    ].join(''),
  )
  fc.assert(
    fc.property(fc.array(fc.nat(answer.length), { maxLength: 20 }), cuts => {
      const sent = createSentTexts()
      const { push, end } = sent.listen('text/event-stream')
      const places = [0, ...cuts.toSorted((a, b) => a - b), answer.length]
      for (const [i, from] of places.entries()) push(answer.subarray(from, places[i + 1] ?? answer.length))
      end()
      expect(['not this', 'nor this', 'send_message', '3'].some(text => sent.take(text))).toBe(false)
      expect(sent.take('héllo\n"x"')).toBe(true)
      expect(sent.take('héllo\n"x"')).toBe(false)
    }),
    { numRuns: 30 },
  )
})

test('a whole document tells the same; what was not sent by the end of the turn is forgotten', () => {
  const sent = createSentTexts()
  const tell = (text: string) => {
    const { push, end } = sent.listen('application/json')
    push(
      Buffer.from(JSON.stringify({ content: [{ type: 'tool_use', name: 'send_message', input: { text } }] })),
    )
    end()
  }
  tell('one')
  tell('two')
  expect(sent.take('one')).toBe(true)
  sent.clear()
  expect(sent.take('two')).toBe(false)
  const { push, end } = sent.listen('application/json')
  push(Buffer.from('{"content": [{'))
  end()
})
