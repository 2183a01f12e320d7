import fc from 'fast-check'
import { expect, test } from 'vitest'
import { textOfMarkdown } from '../../../../../testing/src/channels/discord/formatting.ts'
import { renderMarkdown } from '../markdown.ts'
import { discordMarkdown, literal } from './markup.ts'

const hostile = fc.string({ unit: fc.constantFrom(...'\\*_~`|<>[]()#-+@&:/!1. \nabhtps') })

test('words that are shown to the letter are read as they were written', () => {
  fc.assert(
    fc.property(hostile, text => {
      expect(textOfMarkdown(literal(text))).toBe(text)
    }),
    { numRuns: 2000 },
  )
  const lines =
    '# no title\n- no list\n1. nor this\n> no quote\n-# nor small\nhttps://a_b.example/_c_ <@123> ||seen||'
  expect(textOfMarkdown(literal(lines))).toBe(lines)
})

test('no character takes more than two: what fits a message twice over fits an embed', () => {
  fc.assert(
    fc.property(hostile, text => {
      expect(literal(text).length).toBeLessThanOrEqual(2 * text.length)
    }),
  )
})

test.each([
  ['**a** _b_ ~~c~~ `d*`', '**a** *b* ~~c~~ `d*`'],
  ['see https://example.org/a_b*c', 'see https://example.org/a_b*c'],
  ['[a *link*](https://example.org/?a=1)', '[a *link*](<https://example.org/?a=1>)'],
  ['write to ann_b@example.org', 'write to ann\\_b@example.org'],
  ['[write](mailto:ann@example.org)', 'write (mailto:ann@example.org)'],
  ['<@123> and <#5>', '\\<@123\\> and \\<#5\\>'],
  ['`` a`b ``', 'a\\`b'],
  ['~~~js\na = "```"\n~~~', '```js\na = "``\u200b`"\n```'],
  ['> said\n> so', '> said\n> so'],
])('%j', (markdown, rendered) => {
  expect(renderMarkdown(markdown, discordMarkdown)).toBe(rendered)
})
