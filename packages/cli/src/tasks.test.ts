import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { scheduleInWords } from './schedule.ts'
import { openCommand } from './testing.ts'

async function openTasks() {
  const command = await openCommand('tasks')
  await command.host.addGroup({
    folder: 'family',
    jid: 'chat:1',
    name: 'Family',
    main: false,
    dialect: 'hatchway',
  })
  return command
}

test('a task is added, changed, and seen among the coming runs', async () => {
  const { run, json } = await openTasks()
  const folder = mkdtempSync(join(tmpdir(), 'hatchway-cli-script-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const script = join(folder, 'look.sh')
  writeFileSync(script, 'echo \'{"wakeAgent": true}\'\n')

  const plants = ['--group', 'family', '--prompt', 'water\u001b[2J the plants']
  expect(await json('add', ...plants, '--every', '2h', '--id', 'plants', '--script', script)).toMatchObject({
    task_id: 'plants',
    status: 'active',
    next_run: expect.any(String),
  })
  expect(await json('list')).toMatchObject([
    { id: 'plants', schedule_type: 'interval', schedule_value: '7200000', context_mode: 'group' },
  ])
  expect((await run('list')).out).toContain('every 2 h')

  const changed = [
    '--prompt',
    'feed the cat',
    '--cron',
    '0 9 * * *',
    '--zone',
    'Europe/Lisbon',
    '--no-script',
  ]
  expect(await run('edit', 'plants', ...changed)).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^Task plants is active, next run \d{4}-/),
  })
  const [task] = [await json('list')].flat()
  expect(task).toMatchObject({
    prompt: 'feed the cat',
    schedule_value: '0 9 * * *',
    timezone: 'Europe/Lisbon',
  })
  expect(task).not.toMatchObject({ script: expect.stringMatching(/./) })

  expect(await run('add', ...plants, '--at', '2999-01-01T00:00:00Z')).toMatchObject({ code: 0 })
  const coming = await json('upcoming', '--days', '3')
  expect(coming).toMatchObject([{ task_id: 'plants' }, { task_id: 'plants' }, { task_id: 'plants' }])
  expect((await run('upcoming', '--days', '3')).out).toMatch(
    /^AT +TASK +GROUP +PROMPT\n\d{4}-.* feed the cat\n/,
  )
  expect((await run('list')).out).toContain('water\\u001b[2J the plants')
})

test('a task with invalid options is not sent', async () => {
  const { run, json } = await openTasks()
  const family = ['--group', 'family', '--prompt', 'x']
  expect(await run('add', ...family)).toMatchObject({ code: 64, err: expect.stringContaining('--every') })
  expect(await run('add', ...family, '--every', '2h', '--cron', '* * * * *')).toMatchObject({ code: 64 })
  expect(await run('add', ...family, '--every', 'often')).toMatchObject({ code: 64 })
  expect(await run('edit', '7')).toMatchObject({ code: 64, err: expect.stringContaining('--prompt') })
  expect(await run('edit', '7', '--prompt', 'x')).toMatchObject({ code: 2 })
  expect(await run('add', '--group', 'nobody', '--prompt', 'x', '--every', '2h')).toMatchObject({ code: 2 })
  expect(await json('list', '--all')).toEqual([])
})

test('schedules are shown in words, and not rounded', () => {
  const every = (ms: number) => scheduleInWords({ schedule_type: 'interval', schedule_value: String(ms) })
  expect(every(600_000)).toBe('every 10 min')
  expect(every(90_000_000)).toBe('every 1 d 1 h')
  expect(every(1500)).toBe('every 1 s 500 ms')
  expect(scheduleInWords({ schedule_type: 'cron', schedule_value: '0 9 * * *' })).toBe('cron 0 9 * * *')
})
