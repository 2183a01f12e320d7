import { expect, test } from 'vitest'
import { labelsFor, suggestionFor } from './labels.ts'
import { lendingOf } from './lending.ts'

const tool = (name: string, annotations?: object) => ({ name, inputSchema: { type: 'object' }, annotations })

const shownOf = (listed: readonly unknown[]) => lendingOf('odd', {}, listed).tools

test.each([
  [{ command: ['npx', '-y', '@modelcontextprotocol/server-filesystem@1.2.3', '/srv'] }, false, true],
  [{ command: 'uvx', args: ['mcp-server-time'] }, false, false],
  [{ command: ['/opt/bin/github-mcp-server', 'stdio'] }, true, true],
  [{ command: ['npx', '@playwright/mcp@latest'] }, true, true],
  [{ url: 'https://example.com/mcp' }, true, true],
  [{ url: 'http://127.0.0.1:3000/mcp' }, false, true],
  // A name that only looks like a known one.
  [{ command: ['npx', 'evil-mcp-server-time'] }, true, true],
  [{ command: ['node', '/tmp/server.js'] }, true, true],
])('of %j is suggested: internet %s, private %s', (settings, internet, isPrivate) => {
  expect(suggestionFor(settings, [tool('a')])).toMatchObject({ internet, private: isPrivate })
})

test('one that says of all its tools that they stay at home is believed as far as a suggestion goes', () => {
  const home = tool('a', { openWorldHint: false })
  expect(suggestionFor({ command: 'a' }, [home])).toMatchObject({ internet: false, known: null })
  expect(suggestionFor({ command: 'a' }, [home, tool('b')])).toMatchObject({ internet: true })
  expect(suggestionFor({ command: 'a' }, [])).toMatchObject({ internet: true })
})

test('hints make a tool stricter than the answers, and looser only in that it changes nothing', () => {
  const listed = [
    tool('plain'),
    tool('reads', { readOnlyHint: true }),
    tool('adds', { destructiveHint: false }),
    tool('leaks', { readOnlyHint: true, openWorldHint: true }),
    { name: 7 },
    'rubbish',
  ]
  expect(labelsFor({ internet: false, private: false }, shownOf(listed))).toEqual({
    labels: { public_source: 'no', public_sink: 'no', secret_data: 'no' },
    tools: {
      plain: { labels: { dangerous_writes: 'yes' } },
      reads: { labels: { dangerous_writes: 'no' } },
      // It does not say that it only reads, which is what people are shown.
      adds: { labels: { dangerous_writes: 'yes' } },
      leaks: { labels: { dangerous_writes: 'no', public_source: 'yes', public_sink: 'yes' } },
    },
  })
  const { labels, tools } = labelsFor(
    { internet: true, private: true },
    shownOf([tool('home', { openWorldHint: false, destructiveHint: false })]),
  )
  expect(labels).toEqual({ public_source: 'yes', public_sink: 'yes', secret_data: 'yes' })
  expect(tools.home?.labels).toEqual({ dangerous_writes: 'yes' })
})

test('a tool that is listed twice is kept with the hints it is shown with', () => {
  const careful = tool('twice')
  const careless = tool('twice', { readOnlyHint: true })
  const broken = { ...careless, inputSchema: 7 }
  for (const listed of [
    [careful, careless],
    [broken, careful, careless],
  ]) {
    const shown = shownOf(listed)
    expect(shown.map(({ annotations }) => annotations.readOnlyHint)).toEqual([undefined])
    expect(labelsFor({ internet: false, private: false }, shown).tools).toEqual({
      twice: { labels: { dangerous_writes: 'yes' } },
    })
  }
})
