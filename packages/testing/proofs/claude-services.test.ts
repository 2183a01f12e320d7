import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { findProgram } from '../../host/src/base/programs.ts'
import { openClaude, tool } from '../src/agents/claude.ts'
import { diceExample } from '../src/paths.ts'
import { isRadicaleMissing, passwordOf, startRadicale } from '../src/radicale.ts'
import { until } from '../src/until.ts'

/**
 * Every service, asked by Claude's own program from a sandbox without a network: a calendar on a real server, memories,
 * todos, a public MCP server that the host runs, a service of the operator's own, and a person who is asked.
 */
const missing = findProgram('bwrap') === undefined ? 'bwrap' : isRadicaleMissing() ? 'radicale' : undefined
const attempt = missing === undefined || process.env.CI === 'true' ? test : test.skip

const everything = fileURLToPath(import.meta.resolve('@modelcontextprotocol/server-everything/dist/index.js'))

const event = {
  title: 'Dentist',
  start: '2031-03-04T10:00:00',
  end: '2031-03-04T11:00:00',
  calendar: 'Family',
}
const steps = [
  {
    calls: [tool('save_memory', { key: 'tea', content: 'Ana drinks Ostfriesentee', category: 'people' })],
    heard: ['tea'],
  },
  { calls: [tool('recall_memories', { query: 'tee' })], heard: ['Ana drinks Ostfriesentee'] },
  { calls: [tool('list_memories', {}), tool('forget_memory', { key: 'tea' })], heard: ['people'] },
  { calls: [tool('add_todo', { content: 'buy milk' })], heard: ['buy milk'] },
  { calls: [tool('list_todos', {})], heard: ['buy milk'] },
  { calls: [tool('complete_todo', { todo_id: 'no such' })], heard: ['not_found'] },
  { calls: [tool('list_calendars', {})], heard: ['Family'] },
  { calls: [tool('create_event', event)], heard: ['Dentist'] },
  {
    calls: [tool('list_calendar', { start_date: '2031-03-04', end_date: '2031-03-04', calendar: 'Family' })],
    heard: ['Dentist', '2031-03-04T10:00:00'],
  },
  { calls: [tool('delete_event', { event_id: 'no such', calendar: 'Family' })], heard: ['refused'] },
  { calls: [tool('everything_echo', { message: 'through the hatch' })], heard: ['through the hatch'] },
  { calls: [tool('roll_dice', { dice: 3 })], heard: ['sum'] },
  {
    calls: [
      tool('ask_user', {
        questions: [{ question: 'Tea or coffee?', options: [{ label: 'Tea' }, { label: 'Coffee' }] }],
      }),
    ],
    heard: ['Coffee'],
  },
]

describe(`Services, asked from a sandbox${missing === undefined ? '' : ` (needs ${missing})`}`, () => {
  attempt('Claude uses every one of them', async () => {
    const radicale = await startRadicale(['ana'])
    onTestFinished(() => radicale.stop())
    await radicale.makeCalendar('ana', 'family', 'Family')
    const claude = await openClaude(
      steps,
      {
        services: { plugins: [diceExample] },
        calendars: { home: { url: radicale.url, username: 'ana', passwordVariable: 'ANAS_PASSWORD' } },
        mcp: { everything: { command: [process.execPath, everything, 'stdio'], groups: 'all' } },
      },
      () => ({ ANAS_PASSWORD: passwordOf('ana') }),
    )
    const { installation } = claude
    // The lent server has started, and its tools are known.
    await until(async () => (await installation.hatchway('services', 'list')).includes('everything_echo'))
    // A calendar holds what strangers wrote and what must not get out: from then on a person is asked.
    const allowed: string[] = []
    const said = claude.work(async (id, name) => {
      await installation.hatchway('approvals', 'allow', id)
      allowed.push(name)
    })
    await until(async () => (await installation.texts()).some(text => text.includes('Tea or coffee?')))
    await installation.hatchway('chat', '--once', '2')
    expect(await said).toContain('All of it is done.')
    expect(allowed).toEqual(['create_event', 'delete_event', 'everything_echo'])
    expect(await installation.hatchway('audit', 'verify')).toContain('The audit log is intact')

    const heard = claude.expectHeard()
    expect(heard).toHaveLength(steps.length)
    expect(heard.join()).not.toContain(passwordOf('ana'))
    // All of it was one run, whose answer to the question is not another message for it.
    expect(await installation.runs()).toHaveLength(1)
    expect(JSON.parse(await installation.hatchway('services', 'requests', '--json'))).toEqual([])
  })
})
