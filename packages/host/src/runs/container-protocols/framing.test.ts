import { type RunEvent, type RunStart, recordSeparator, runStartSchema } from '@hatchway/protocol'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { containerProtocols } from './index.ts'

const start: RunStart = runStartSchema.parse({
  version: 1,
  run_id: 'r-1',
  kind: 'chat',
  group: { folder: 'family', name: 'Family', jid: 'family@chat', main: false },
  assistant: 'Hatch',
  timezone: 'Europe/Lisbon',
  session_id: 's-1',
  model: null,
  task: null,
  inputs: [{ id: '1', text: 'hello', sender: 'u1', sender_name: 'Ada', timestamp: '2026-01-01T00:00:00Z' }],
  context: [],
  driver: { name: 'concierge' },
  events: 'auto',
})
const task: RunStart = { ...start, kind: 'task', task: { id: '7', occurrence_id: 'o', script: 'true' } }

/** Whatever the pieces, the same is read. */
const readInPieces = (
  dialect: keyof typeof containerProtocols,
  output: string,
  cuts: readonly number[],
): RunEvent[] => {
  const reader = containerProtocols[dialect].createReader()
  const places = [...new Set(cuts.map(cut => cut % (output.length + 1)))].sort((a, b) => a - b)
  return [...places, output.length].flatMap((end, i) => [
    ...reader.read(output.slice(places[i - 1] ?? 0, end)),
  ])
}

describe('Hatchway’s own runner', () => {
  test('is given the whole document', () => {
    expect(runStartSchema.parse(JSON.parse(containerProtocols.hatchway.stdin(start)))).toEqual(start)
  })

  test('is told who it is by its environment', () => {
    expect(containerProtocols.hatchway.environment(task)).toEqual({
      HATCHWAY_GROUP: 'family',
      HATCHWAY_JID: 'family@chat',
      HATCHWAY_MAIN: '0',
      HATCHWAY_SCHEDULED: '1',
      TZ: 'Europe/Lisbon',
    })
  })

  test('is understood in pieces of any size, with rubbish in between', () => {
    const events: RunEvent[] = [
      { type: 'ready' },
      { type: 'used', inputs: ['1'] },
      { type: 'result', text: 'héllo\nworld', session_id: null },
    ]
    const output = events.map(event => `rubbish\n${recordSeparator}${JSON.stringify(event)}\n`).join('')
    fc.assert(
      fc.property(fc.array(fc.nat(1000)), cuts => {
        const read = readInPieces('hatchway', output, cuts)
        expect(read.filter(event => event.type !== 'step')).toEqual(events)
        expect(read.filter(event => event.type === 'step')).toHaveLength(events.length)
      }),
    )
  })

  test.each([
    ['not JSON', `${recordSeparator}{"type":`],
    ['of an unknown kind', `${recordSeparator}{"type":"approve"}`],
    ['of the wrong shape', `${recordSeparator}{"type":"used","inputs":"all"}`],
  ])('an event %s is noted without quoting it', (_, line) => {
    const [event] = containerProtocols.hatchway.createReader().read(`${line}\n`)
    expect(event).toMatchObject({ type: 'step', kind: 'notice' })
    expect(JSON.stringify(event)).not.toContain('approve')
  })

  test('a line without an end does not fill the memory, and the next one is read', () => {
    const reader = containerProtocols.hatchway.createReader()
    for (let i = 0; i < 40; i++) expect(reader.read('x'.repeat(100_000))).toEqual([])
    expect(reader.read(`\n${recordSeparator}{"type":"ready"}\n`)).toEqual([{ type: 'ready' }])
  })
})

describe('a NanoClaw container', () => {
  test('gets its document on standard input', () => {
    expect(JSON.parse(containerProtocols.nanoclaw.stdin(task))).toEqual({
      prompt: 'hello',
      sessionId: 's-1',
      groupFolder: 'family',
      chatJid: 'family@chat',
      isMain: false,
      isScheduledTask: true,
      assistantName: 'Hatch',
      script: 'true',
    })
    expect(
      containerProtocols.nanoclaw.environment({ ...start, group: { ...start.group, main: true } }),
    ).toMatchObject({
      NANOCLAW_CHAT_JID: 'family@chat',
      NANOCLAW_GROUP_FOLDER: 'family',
      NANOCLAW_IS_MAIN: '1',
    })
  })

  test('speaks between its markers, as often as it likes', () => {
    const block = (body: object) =>
      `---NANOCLAW_OUTPUT_START---\n${JSON.stringify(body)}\n---NANOCLAW_OUTPUT_END---\n`
    const output = [
      '[agent-runner] starting\n',
      block({ status: 'success', result: 'one', newSessionId: 's-2' }),
      block({ status: 'success', result: null }),
      block({ status: 'error', result: null, error: 'it broke' }),
      '---NANOCLAW_OUTPUT_START---\nnot JSON\n---NANOCLAW_OUTPUT_END---\n',
    ].join('')
    fc.assert(
      fc.property(fc.array(fc.nat(1000)), cuts => {
        expect(readInPieces('nanoclaw', output, cuts)).toEqual([
          { type: 'result', text: 'one', session_id: 's-2' },
          { type: 'result', text: null, session_id: null },
          { type: 'error', message: 'it broke', session_id: null },
          { type: 'step', kind: 'notice', text: expect.any(String) },
        ])
      }),
    )
  })
})

describe('who said what', () => {
  const several: RunStart = {
    ...start,
    context: start.inputs.map(input => ({ ...input, id: '0', text: 'a < b', sender_name: 'Bo "the" Bo' })),
    notices: ['a "notice" & more'],
  }
  const spoken = (time: string) =>
    `<messages>\n<message sender="Bo &quot;the&quot; Bo" time="${time}">a &lt; b</message>\n<message sender="Ada" time="${time}">hello</message>\n</messages>`
  const notices = '<system_notices>\n- a &quot;notice&quot; &amp; more\n</system_notices>\n'
  const instant = '2026-01-01T00:00:00Z'

  test('NanoClaw: names the zone, and the times in it', () => {
    expect(JSON.parse(containerProtocols.nanoclaw.stdin(several)).prompt).toBe(
      `${notices}<context timezone="Europe/Lisbon" />\n${spoken('Jan 1, 2026, 12:00 AM')}`,
    )
  })

  test('mdclaw and NovaBot: instants', () => {
    expect(JSON.parse(containerProtocols.mdclaw.stdin(several)).prompt).toBe(notices + spoken(instant))
    expect(JSON.parse(containerProtocols.novabot.files(several)[0]?.content ?? '').prompt).toBe(
      notices + spoken(instant),
    )
  })

  test('Pynchy: rows, which its container puts into words', () => {
    expect(JSON.parse(containerProtocols.pynchy.files(several)[0]?.content ?? '')).toMatchObject({
      messages: [
        { sender_name: 'Bo "the" Bo', content: 'a < b', timestamp: instant },
        { sender_name: 'Ada', content: 'hello', timestamp: instant },
      ],
      system_notices: ['a &quot;notice&quot; &amp; more'],
    })
  })

  test('a task’s prompt is nobody’s', () => {
    expect(JSON.parse(containerProtocols.nanoclaw.stdin({ ...task, notices: ['n'] })).prompt).toBe(
      '<system_notices>\n- n\n</system_notices>\nhello',
    )
  })
})

test('an mdclaw container has its directory at /ipc, no secrets, and speaks plainly', () => {
  expect(containerProtocols.mdclaw.mountPoint).toBe('/ipc')
  expect(JSON.parse(containerProtocols.mdclaw.stdin(start))).toMatchObject({ secrets: {} })
  expect(
    containerProtocols.mdclaw
      .createReader()
      .read('---NANOCLAW_OUTPUT_START---\nplain\ntext\n---NANOCLAW_OUTPUT_END---\n'),
  ).toEqual([{ type: 'result', text: 'plain\ntext', session_id: null }])
})

describe('what an mdclaw container prints when its agent failed', () => {
  const words = 'I encountered an error: Claude Code process exited\nwith code 1'
  const read = (text: string, sent?: Parameters<typeof containerProtocols.mdclaw.createReader>[0]) =>
    containerProtocols.mdclaw
      .createReader(sent)
      .read(`\n---NANOCLAW_OUTPUT_START---\n${text}\n---NANOCLAW_OUTPUT_END---\n`)

  test('is an error with its reason, and no answer', () => {
    expect(read(words)).toEqual([
      { type: 'error', message: 'Claude Code process exited\nwith code 1', session_id: null },
    ])
    expect(read('I encountered an error: ')).toMatchObject([
      { type: 'error', message: 'The agent failed and gave no reason.' },
    ])
  })

  test('is recognised only at its beginning, and not in what the model sends with its tool', () => {
    for (const answer of [`Yesterday: ${words}`, 'I encountered an error in your text.'])
      expect(read(answer)).toEqual([{ type: 'result', text: answer, session_id: null }])
    expect(read(words, { take: () => true, clear: () => {} })).toEqual([{ type: 'message', text: words }])
  })
})

describe('a NovaBot container', () => {
  test('has names of its own, and markers of two kinds', () => {
    expect(containerProtocols.novabot.environment(start)).toMatchObject({
      CHAT_JID: 'family@chat',
      IS_MAIN: 'false',
    })
    for (const name of ['NOVABOT', 'NANOCLAW']) {
      const block = `---${name}_OUTPUT_START---\n{"status":"success","result":"x"}\n---${name}_OUTPUT_END---\n`
      expect(containerProtocols.novabot.createReader().read(block)).toEqual([
        { type: 'result', text: 'x', session_id: null },
      ])
    }
  })

  test('is asked to stay for a chat, which is in its inbox, and to end after a task', () => {
    const stays = JSON.parse(containerProtocols.novabot.stdin(start))
    expect(stays).not.toHaveProperty('prompt')
    expect(stays).toMatchObject({ groupFolder: 'family', chatJid: 'family@chat', agentName: 'Hatch' })
    const [file] = containerProtocols.novabot.files(start)
    expect(file?.path).toBe('inbox/1.json')
    expect(JSON.parse(file?.content ?? '')).toMatchObject({
      id: '1',
      prompt: expect.stringContaining('>hello<'),
    })
    expect(JSON.parse(containerProtocols.novabot.stdin(task))).toMatchObject({
      prompt: 'hello',
      isScheduledTask: true,
    })
    expect(containerProtocols.novabot.files(task)).toEqual([])
  })

  test('names in each file of its outbox what it answers', () => {
    const meaning = (body: Record<string, unknown>) => containerProtocols.novabot.outlet?.meaning(body)
    expect(meaning({ id: 'ready', status: 'success' })).toEqual([{ type: 'ready' }])
    expect(meaning({ id: '7', status: 'success', result: 'yes', newSessionId: 's-2' })).toEqual([
      { type: 'used', inputs: ['7'] },
      { type: 'result', text: 'yes', session_id: 's-2' },
    ])
    expect(meaning({ id: '7', status: 'interrupted' })).toEqual([
      { type: 'used', inputs: ['7'] },
      { type: 'result', text: null, session_id: null },
    ])
    expect(meaning({ id: '7', status: 'error', error: 'no' })).toEqual([
      { type: 'error', message: 'no', session_id: null },
    ])
    expect(meaning({ id: '7' })).toMatchObject([{ kind: 'notice' }])
  })
})

describe('a Pynchy container', () => {
  test('finds its document in its inbox, in the words of its own', () => {
    const [file] = containerProtocols.pynchy.files({ ...task, group: { ...task.group, main: true } })
    expect(file?.path).toBe('input/initial.json')
    expect(JSON.parse(file?.content ?? '')).toMatchObject({
      messages: [{ content: 'hello', sender_name: 'Ada' }],
      group_folder: 'family',
      chat_jid: 'family@chat',
      is_admin: true,
      session_id: 's-1',
      is_scheduled_task: true,
      repo_access: null,
      system_prompt_append: null,
    })
  })

  test('works in the project if it has a repository, and is told its directives', () => {
    const driver = { ...start.driver, instructions: 'Be brief.' }
    const [file] = containerProtocols.pynchy.files({ ...start, driver, repository: 'site' })
    const given = JSON.parse(file?.content ?? '')
    // As its runner chooses its working directory.
    expect(given.is_admin || given.repo_access ? '/workspace/project' : '/workspace/group').toBe(
      '/workspace/project',
    )
    expect(given.system_prompt_append).toBe('Be brief.')
  })

  test.each([
    [
      { type: 'result', status: 'success', result: 'yes', new_session_id: 's-2' },
      { type: 'result', text: 'yes', session_id: 's-2' },
    ],
    [
      { type: 'result', status: 'success', result: null },
      { type: 'result', text: null, session_id: null },
    ],
    [
      { type: 'result', status: 'error', error: 'no' },
      { type: 'error', message: 'no', session_id: null },
    ],
    [
      { type: 'thinking', status: 'success', thinking: 'hm' },
      { type: 'step', kind: 'thinking', text: 'hm' },
    ],
    [
      { type: 'text', status: 'success', text: 'so' },
      { type: 'step', kind: 'text', text: 'so' },
    ],
    [
      { type: 'tool_use', status: 'success', tool_name: 'Read', tool_input: { path: 'x' } },
      { type: 'step', kind: 'tool_call', name: 'Read', text: '{"path":"x"}' },
    ],
    [
      { type: 'tool_result', status: 'success', tool_result_content: 'content' },
      { type: 'step', kind: 'tool_result', text: 'content' },
    ],
    [{ type: 'approve' }, { type: 'step', kind: 'notice' }],
  ])('says %o', (body, event) => {
    expect(containerProtocols.pynchy.outlet?.meaning(body)).toMatchObject([event])
  })
})

test('a container that looks elsewhere for its folder finds it there', () => {
  expect(containerProtocols.mdclaw.groupAt(start)).toEqual(['/data'])
  expect(containerProtocols.pynchy.groupAt(start)).toEqual([])
  expect(containerProtocols.pynchy.groupAt({ ...start, group: { ...start.group, main: true } })).toEqual([
    '/workspace/project',
  ])
})
