import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { expect, test } from 'vitest'
import { Markdown } from './markdown.tsx'

const drawn = (text: string) => renderToStaticMarkup(createElement(Markdown, { text }))
const tags = (html: string) => [...new Set([...html.matchAll(/<([a-z0-9]+)/g)].map(([, tag]) => tag))].sort()

test('headings, lists, tables, code and quotes become elements', () => {
  const html = drawn(
    '# Plan\n\n1. one **two**\n2. `three`\n\n- [x] four\n\n| a | b |\n|:-|-:|\n| 1 | 2 |\n\n```sh\nls <x>\n```\n> five\n\nsix\nseven',
  )
  expect(tags(html)).toEqual(
    'blockquote br code div li ol p pre span strong table tbody td th thead tr ul'.split(' ').sort(),
  )
  expect(html).toContain('ls &lt;x&gt;')
})

test('markup stays text, also inside of everything else', () => {
  const markup = '<img src=x onerror="alert(1)"><script>alert(2)</script><b>bold</b>'
  for (const text of [
    markup,
    `# ${markup}`,
    `- ${markup}`,
    `> ${markup}`,
    `**${markup}**`,
    `| ${markup} |\n|-|`,
  ]) {
    expect(tags(drawn(text)).filter(tag => ['img', 'script', 'b'].includes(tag ?? ''))).toEqual([])
    expect(drawn(text)).toContain('&lt;img src=x onerror=&quot;alert(1)&quot;&gt;')
  }
})

test('a link leads to the web or to a mailbox only, and says where if its words do not', () => {
  expect(drawn('[the bank](https://evil.example/login)')).toMatch(
    /<a href="https:\/\/evil.example\/login"[^>]* rel="noopener noreferrer">the bank<span[^>]*> \(evil.example\)<\/span><\/a>/,
  )
  expect(drawn('https://good.example/a')).not.toContain('leads-to')
  expect(drawn('[good.example](https://evil.example)')).toContain('(evil.example)')
  for (const address of [
    'javascript:alert(1)',
    'JaVaScRiPt:alert(1)',
    'data:text/html,x',
    '//x.example',
    '#/settings',
    'file:///etc/passwd',
  ]) {
    expect(drawn(`[a](${address})`)).not.toContain('<a')
  }
  // A picture would be fetched, and tell that it was seen.
  expect(tags(drawn('![x](https://evil.example/x.png)'))).toEqual(['p'])
})

test('what would keep the parser busy or make it fail is shown as it is', () => {
  const many = (part: string, length = 19_000) => part.repeat(length / part.length)
  const busy = [
    ...['>', '- ', '1. ', '*', '[', '*a_', 'a.', '![a', '[a](', '~a', 'a@', '<a ', '|', 'http://'].map(part =>
      many(part),
    ),
    Array.from({ length: 120 }, (_, i) => `${' '.repeat(i * 2)}- x`).join('\n'),
    many(`${many('*a_', 190)}\n\n`),
    many(`${many('a.', 390)}@ `),
    many('`a*'),
  ]
  for (const text of busy) expect(drawn(text).length).toBeGreaterThan(1000)
  expect(drawn(`**one**\n\n${many('*a_')}`)).toContain('<strong>one</strong>')
  expect(drawn('x'.repeat(30_000))).toContain('as-is')
})
