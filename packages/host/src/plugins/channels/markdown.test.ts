import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type MarkdownStyle, plain, renderMarkdown } from './markdown.ts'

const tagged: MarkdownStyle = {
  text: raw => raw.replaceAll('<', '&lt;'),
  bold: inner => `<b>${inner}</b>`,
  italic: inner => `<i>${inner}</i>`,
  strike: inner => `<s>${inner}</s>`,
  code: raw => `<c>${raw}</c>`,
  block: (raw, language) => `<pre ${language ?? ''}>${raw}</pre>`,
  link: (inner, url) => `<a ${url}>${inner}</a>`,
  quote: inner => `<q>${inner}</q>`,
}

test.each([
  ['**a** _b_ ~~c~~ `d*`', '<b>a</b> <i>b</i> <s>c</s> <c>d*</c>'],
  ['# A title\n\nand text', '<b>A title</b>\n\nand text'],
  ['- one\n- two\n  - three', '• one\n• two\n  \n  • three'],
  ['3. one\n4. two', '3. one\n4. two'],
  ['- [x] done\n- [ ] open', '☑ done\n☐ open'],
  ['> said\n> so', '<q>said\nso</q>'],
  ['```js\na < b\n```', '<pre js>a < b</pre>'],
  ['[here](https://example.org)', '<a https://example.org>here</a>'],
  ['[here](javascript:alert(1))', '[here](javascript:alert(1))'],
  ['<b>not ours</b>', '&lt;b>not ours&lt;/b>'],
])('%j', (markdown, rendered) => {
  expect(renderMarkdown(markdown, tagged)).toBe(rendered)
})

test('plain text keeps its words, and shows where a link goes', () => {
  expect(renderMarkdown('**Look** [here](https://example.org) or https://example.com', plain)).toBe(
    'Look here (https://example.org) or https://example.com',
  )
})

test('whatever the text, it is rendered, and no markup comes through unescaped', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'<ab*_`[]()#>-1. \n~|\\!') }), text => {
      const rendered = renderMarkdown(text, { ...tagged, code: tagged.text, block: tagged.text })
      const own = rendered.replaceAll(/<\/?(?:b|i|s|q)>|<a [^>]*>|<\/a>/g, '')
      expect(own).not.toContain('<')
    }),
  )
})
