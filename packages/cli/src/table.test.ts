import { explainConfig } from '@hatchway/host/config'
import stringWidth from 'string-width'
import { describe, expect, test } from 'vitest'
import { columns as commandColumns } from './commands/commands.ts'
import { columns as settingColumns } from './commands/config.ts'
import { columns as errorColumns } from './commands/errors.ts'
import { columns as groupColumns } from './commands/groups.ts'
import { columns as runColumns } from './commands/runs.ts'
import { historyColumns, columns as taskColumns } from './commands/tasks.ts'
import { type Column, createTable } from './table.ts'

interface Row {
  id: number
  name: string
  text: string
}

const columns: Column<Row>[] = [
  { title: 'ID', value: row => String(row.id), right: true },
  { title: 'NAME', value: row => row.name, flexible: true },
  { title: 'TEXT', value: row => row.text, flexible: true },
]

test('columns are aligned', async () => {
  const table = createTable(columns, undefined)
  expect(
    await table([
      { id: 1, name: 'a', text: 'x' },
      { id: 20, name: 'long name', text: 'y' },
    ]),
  ).toBe('ID  NAME       TEXT\n 1  a          x\n20  long name  y\n')
})

test('without a terminal nothing is cut', async () => {
  const text = 'word '.repeat(100).trim()
  expect(await createTable(columns, undefined)([{ id: 1, name: 'a', text }])).toContain(text)
})

test.each([40, 60, 80])('every line fits a terminal of %d columns', async width => {
  const rows = [
    { id: 1, name: 'a name that is rather long', text: 'text '.repeat(50) },
    { id: 2, name: '日本語の名前はとても長いです', text: '👩‍🚀'.repeat(60) },
  ]
  const lines = (await createTable(columns, width)(rows)).trimEnd().split('\n')
  expect(lines).toHaveLength(3)
  for (const line of lines) expect(stringWidth(line)).toBeLessThanOrEqual(width)
  expect(lines[1]).toContain('…')
})

test('a later batch continues the table without a second title', async () => {
  const table = createTable(columns, undefined)
  await table([{ id: 1, name: 'a name', text: 'x' }])
  expect(await table([{ id: 2, name: 'b', text: 'y' }])).toBe(' 2  b       y\n')
})

test('one row is one line, whatever is in it', async () => {
  const lines = await createTable(columns, undefined)([{ id: 1, name: 'a\nb', text: '\u001b[2J' }])
  expect(lines).toBe('ID  NAME  TEXT\n 1  a\\nb  \\u001b[2J\n')
})

test('similar columns shrink to the same width', async () => {
  const three: Column<string>[] = ['A', 'B', 'C'].map(title => ({ title, value: row => row, flexible: true }))
  const [, line = ''] = (await createTable(three, 34)(['x'.repeat(40)])).split('\n')
  expect(line.split('  ').map(cell => cell.length)).toEqual([10, 10, 10])
})

describe('the tables of the commands', () => {
  const id = '6705ac65-1111-4000-8000-000000000000'
  const at = '2026-11-16T22:04:05.000Z'
  const long = 'something that goes on and on '.repeat(5)
  const run = {
    id,
    group: 'a-family-of-six',
    kind: 'task',
    task_id: '17',
    occurrence_id: null,
    sandbox: 'bubblewrap',
    image: null,
    driver: 'claude',
    session_id: null,
    status: 'running',
    started_at: at,
    ended_at: '2026-11-16T22:14:05.000Z',
    result: long,
    error: null,
  } as const
  const tables: Record<string, (width: number | undefined) => string | Promise<string>> = {
    runs: width => createTable(runColumns, width)([run]),
    history: width =>
      createTable(
        historyColumns,
        width,
      )([{ ...run, due_at: at, manual: true, status: 'running', run_id: id }]),
    tasks: width =>
      createTable(
        taskColumns,
        width,
      )([
        {
          id: '17',
          group: 'a-family-of-six',
          jid: 'chat:1',
          created_by: 'main',
          script: null,
          model: null,
          status: 'completed',
          next_run: at,
          last_run: null,
          last_result: null,
          schedule_type: 'cron',
          schedule_value: '0 9 * * 1-5',
          timezone: 'America/Argentina/Buenos_Aires',
          prompt: long,
          context_mode: 'group',
          created_at: at,
        },
      ]),
    errors: width =>
      createTable(
        errorColumns,
        width,
      )([
        {
          id: '12345',
          original_file: `${id}.json`,
          error: long,
          processed_at: at,
          source_group: 'a-family-of-six',
          directory: 'messages',
          code: 'unregistered_group',
          type: null,
          kept: true,
          size: 1,
          count: 1,
        },
      ]),
    commands: width =>
      createTable(
        commandColumns,
        width,
      )([
        {
          seq: 1_234_567,
          group: 'a-family-of-six',
          file: `${id}.json`,
          dialect: 'hatchway',
          type: 'create_periodic_agent',
          request_id: id,
          outcome: { ok: false, error: { code: 'unregistered_group', message: long } },
          received_at: at,
          took_us: 12_345,
        },
      ]),
    groups: width =>
      createTable(
        groupColumns,
        width,
      )([
        {
          folder: 'a-family-of-six',
          jid: '120363041234567890@g.us',
          name: 'The family, all of it',
          main: true,
          dialect: 'nanoclaw',
          trigger: null,
          requires_trigger: false,
          channel: null,
          added_at: at,
          last_activity: at,
          mode: 'polling',
          sandbox: 'bubblewrap',
          driver: 'claude',
          repo: null,
          mounts: [],
          limits: {
            commands_per_minute: 1,
            files_waiting: 1,
            open_tasks: 1,
            open_requests: 1,
            open_todos: 1,
            file_bytes: 1,
            memory_mb: 1,
            processes: 1,
            cpus: 1,
            run_ms: 1,
          },
          taint: { corrupted: false, secret: false },
          session: null,
        },
      ]),
    config: async width => createTable(settingColumns, width)((await explainConfig({ env: {} })).values),
  }

  test.each(Object.keys(tables).flatMap(name => [60, 80].map(width => ({ name, width }))))(
    '$name fits $width columns',
    async ({ name, width }) => {
      const lines = ((await tables[name]?.(width)) ?? '').trimEnd().split('\n')
      expect(lines.length).toBeGreaterThan(1)
      for (const line of lines) expect({ line, fits: line.length <= width }).toEqual({ line, fits: true })
    },
  )

  test('ids and times are short on a narrow terminal, and complete elsewhere', async () => {
    expect(await tables.runs?.(80)).toMatch(/^6705ac65 {2}11-16 \d\d:04 {2}/m)
    for (const width of [undefined, 200]) expect(await tables.runs?.(width)).toContain(`${id}  2026-11-16 `)
  })

  test('config leaves out the variables before it cuts values', async () => {
    expect(await tables.config?.(80)).not.toContain('VARIABLE')
    expect(await tables.config?.(undefined)).toContain('HATCHWAY_DURABILITY')
  })
})
