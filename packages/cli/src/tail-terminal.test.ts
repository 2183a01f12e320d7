import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createNames, post } from '@hatchway/spool'
import { expect, vi } from 'vitest'
import { onTerminal, openTerminal } from './testing/terminal.ts'
import { openCommand } from './testing.ts'

const patience = { timeout: 60_000 }
const freshName = createNames()
let requests = 0

/** A daemon with two groups, and a terminal that is about to show what it does. */
async function open(options: Parameters<typeof openTerminal>[0] = {}) {
  const house = await openCommand('tail')
  for (const folder of ['family', 'work']) {
    await house.host.addGroup({
      folder,
      jid: `web:${folder}`,
      name: folder,
      main: false,
      dialect: 'hatchway',
    })
  }
  const send = (group: string, type: string, payload: object, id = `request-${++requests}`) => {
    const content = JSON.stringify({ version: 1, id, type, payload })
    post(join(house.data, 'ipc', group, 'tasks'), content, { name: freshName() })
    return id
  }
  const terminal = await openTerminal(options)
  await terminal.shell()
  const watch = async (...args: string[]) => {
    await terminal.run('tail', '--data', house.data, ...args)
    await terminal.shows(/^hatchway: running .*refused \d+ +waiting: /)
  }
  return { ...house, send, terminal, watch }
}

const restored = '0 1 1'
const onOtherScreen = '1 0 0'

onTerminal('commands appear as they are handled, are filtered and opened (needs tmux)', async () => {
  const { send, terminal, watch } = await open()
  send('family', 'send_message', { text: 'early' })
  await watch()
  await terminal.shows(/family +send_message +ok +[\d.]+ ms/)
  expect(await terminal.mode()).toBe(onOtherScreen)
  send('work', 'send_message', { text: 'later' })
  const refused = send('work', 'fly', { where: 'to the moon' })
  await terminal.shows(/work +fly +refused +unknown_type +[\d.]+ ms/)
  await terminal.shows(/^all commands: 3$/m)

  await terminal.type('gwor')
  await terminal.shows(/^group contains wor: 2 of 3$/m)
  await terminal.hides(/family/)
  await terminal.press('Enter')
  await terminal.type('d')
  await terminal.shows(/^group contains wor, ok only: 1 of 3$/m)
  await terminal.type('d')
  await terminal.shows(/^group contains wor, refused only: 1 of 3$/m)
  await terminal.type('c/no command')
  await terminal.shows(/^text contains “no command”: 1 of 3$/m)
  await terminal.press('Escape')
  await terminal.shows(/^all commands: 3$/m)

  await terminal.press('Up')
  await terminal.shows(/^> .*fly/m)
  await terminal.type('k')
  await terminal.shows(/^> .*send_message/m)
  await terminal.type('j')
  await terminal.press('Enter')
  await terminal.shows(new RegExp(`^request +${refused}$`, 'm'))
  await terminal.shows(/^[\d:.]{12} {2}decided +refused: unknown_type$/m)
  await terminal.press('End')
  await terminal.shows(/^file as received$/m)
  await terminal.shows(/^│ .*"type":"fly","payload":\{"where":"to the moon"\}/m)
  await terminal.press('Escape')
  await terminal.shows(/^all commands: 3$/m)

  await terminal.type(' ')
  await terminal.shows(/PAUSED, 0 new/)
  send('family', 'send_message', { text: 'unseen' })
  await terminal.shows(/^all commands: 3 +PAUSED, 1 new$/m)
  await terminal.type(' ')
  await terminal.shows(/^all commands: 4$/m)
  await terminal.type('?')
  await terminal.shows(/ctrl-c +quit/)
  await terminal.type('x')
  await terminal.shows(/^all commands: 4$/m)

  await terminal.type('q')
  await terminal.shows(/^left with 0$/m)
  expect(await terminal.mode()).toBe(restored)
  await terminal.shows(/^before$/m)
  expect(await terminal.screen()).not.toContain('all commands')
  // Letters are shown as they are typed again, and lines are edited.
  await terminal.type('echo typed $((1 + 1)); stty -a')
  await terminal.press('Enter')
  await terminal.shows(/^typed 2$/m)
  await terminal.shows(/[^-]icanon/)
})

onTerminal('nothing an agent writes moves the cursor or breaks the columns (needs tmux)', async () => {
  const { data, send, terminal, watch } = await open()
  await watch()
  const evil = '\u001b[2J\u001b[1;1HOWNED\u0007\u009b31m\u202e\u001b]0;title\u0007\r\n'
  send('family', `日本語の👩‍🚀${evil}`, { text: evil })
  const tasks = join(data, 'ipc', 'work', 'tasks')
  writeFileSync(join(tasks, 'plain.json'), `{"type":"x","日本語":"${evil}"`)
  writeFileSync(join(tasks, '\u001b[2J日本語👩‍🚀.json'), '{}')
  await terminal.shows(/^all commands: [23]$/m)
  send('family', 'send_message', { text: '日本語 👩‍🚀' })
  await terminal.shows(/send_message +ok/)

  const check = async () => {
    const lines = (await terminal.screen()).split('\n')
    expect(lines[0]).toMatch(/^hatchway: running/)
    expect(lines.every(line => !line.startsWith('OWNED'))).toBe(true)
    return lines
  }
  const lines = await check()
  const took = lines.filter(line => / ms( |$)/.test(line)).map(line => line.indexOf(' ms'))
  expect(took.length).toBeGreaterThan(2)
  expect(new Set(took).size).toBe(1)

  const seen: string[] = []
  for (let i = 0; i < took.length; i++) {
    await terminal.press('Up', 'Enter')
    await terminal.shows(/^file as received|^receipt/m)
    seen.push(...(await check()))
    await terminal.press('End')
    await terminal.shows(/^file as received/m)
    seen.push(...(await check()))
    await terminal.press('Escape')
    await terminal.shows(/^all commands/m)
  }
  expect(seen.join('\n')).toContain('\\u001b[2J')
  await terminal.type('q')
  await terminal.shows(/^left with 0$/m)
})

onTerminal(
  'the view follows the size of the terminal, and has no colours if asked (needs tmux)',
  async () => {
    const { send, terminal, watch } = await open({ env: { NO_COLOR: '1' } })
    for (let i = 0; i < 40; i++) send('family', i % 2 ? 'send_message' : 'fly', { text: `number ${i}` })
    await watch()
    await terminal.shows(/^all commands: 40$/m)
    for (const [columns, rows] of [
      [60, 12],
      [140, 40],
      [30, 5],
      [100, 30],
    ] as const) {
      await terminal.resize(columns, rows)
      await vi.waitFor(async () => {
        const lines = (await terminal.screen()).split('\n')
        expect(lines[0]).toMatch(/^hatchway: running/)
        expect(lines[1]).toBe('all commands: 40')
        expect(lines.slice(3, rows - 1).every(line => line.includes('family'))).toBe(true)
        expect(lines[rows - 1]).toMatch(/^\? help/)
      }, patience)
    }
    // biome-ignore lint/suspicious/noControlCharactersInRegex: colours are written with them
    expect(await terminal.painted()).not.toMatch(/\u001b\[[\d;]*3[1-7]m/)
    await terminal.press('C-c')
    await terminal.shows(/^left with 0$/m)
    expect(await terminal.mode()).toBe(restored)
  },
)

onTerminal('tail reports a restart of the daemon, and misses no command (needs tmux)', async () => {
  const { send, stop, startAgain, terminal, watch } = await open()
  send('family', 'send_message', { text: 'first' })
  await watch('--group', 'family')
  await terminal.shows(/^group family: 1$/m)
  await stop()
  await terminal.shows(/^hatchway: no daemon for \d+ s/)
  await terminal.shows(/^The daemon has ended/m)
  await terminal.press('Enter')
  await terminal.shows(/^No daemon is running/m)
  await terminal.press('Escape', 'Escape')
  send('family', 'fly', {})
  await startAgain()
  await terminal.shows(/^hatchway: running/)
  await terminal.shows(/family +fly +refused/)
  send('family', 'send_message', { text: 'after' })
  send('work', 'send_message', { text: 'another’s' })
  await terminal.shows(/^group family: 3 of 4$/m)

  // However it ends, the terminal is as before.
  process.kill(await terminal.processOf('tail'), 'SIGTERM')
  await terminal.shows(/^left with 0$/m)
  expect(await terminal.mode()).toBe(restored)
})

onTerminal(
  'a flood costs at most ten frames a second, and the screen is never cleared (needs tmux)',
  async () => {
    const { send, terminal, watch } = await open()
    await watch()
    const recorded = await terminal.recorded()
    const begun = performance.now()
    for (let i = 0; i < 300; i++) send(i % 2 ? 'family' : 'work', 'send_message', { text: `number ${i}` })
    await terminal.shows(/^all commands: 300$/m)
    const frames = recorded().split('\u001b[?2026h').length - 1
    expect(frames).toBeLessThanOrEqual((performance.now() - begun) / 100 + 2)
    expect(recorded()).not.toContain('\u001b[2J')
    await terminal.type('q')
    await terminal.shows(/^left with 0$/m)
  },
)

onTerminal('with --plain, or into a pipe, there are lines on a terminal too (needs tmux)', async () => {
  const { data, send, stop, terminal } = await open()
  send('family', 'send_message', { text: 'hello' })
  await terminal.run('tail', '--plain', '--data', data)
  await terminal.shows(/^[\d:.]{12} {2}family +send_message +ok/m)
  expect(await terminal.mode()).toBe(restored)
  await stop()
  await terminal.shows(/^left with 0$/m)
  await terminal.run('tail', '-n', '1', '--data', data, '|', 'cat')
  await vi.waitFor(
    async () => expect((await terminal.screen()).match(/left with 0/g)).toHaveLength(2),
    patience,
  )
  expect(await terminal.screen()).toContain('no daemon is running')
})

onTerminal('a failure of our own leaves the terminal as it was (needs tmux)', async () => {
  const breaks = "process.on('SIGUSR2',()=>{throw%20new%20Error('broken%20on%20purpose')})"
  const { terminal, watch } = await open({
    env: { NODE_OPTIONS: `--import=data:text/javascript,${breaks}` },
  })
  await watch()
  expect(await terminal.mode()).toBe(onOtherScreen)
  process.kill(await terminal.processOf('tail'), 'SIGUSR2')
  await terminal.shows(/^left with 1$/m)
  expect(await terminal.screen()).toContain('Error: broken on purpose')
  expect(await terminal.mode()).toBe(restored)
})

onTerminal('it can be stopped with Ctrl-Z and taken up again (needs tmux)', async () => {
  const { data, send, terminal } = await open()
  await terminal.runAlone('tail', '--data', data)
  await terminal.shows(/^all commands: 0$/m)
  await terminal.press('C-z')
  await terminal.shows(/Stopped/)
  expect(await terminal.mode()).toBe(restored)
  send('family', 'send_message', { text: 'meanwhile' })
  await terminal.type('fg')
  await terminal.press('Enter')
  await terminal.shows(/^all commands: 1$/m)
  expect(await terminal.mode()).toBe(onOtherScreen)
  await terminal.type('q')
  await terminal.hides('all commands')
  expect(await terminal.mode()).toBe(restored)
})

onTerminal('progress is shown, and disappears at the end (needs tmux)', async () => {
  const { data, stop, terminal } = await open()
  await stop()
  const message = `'{"text":"hello"}'`
  await terminal.run(
    ...['post', '--data', data, '--group', 'family', '--type', 'send_message'],
    ...['--payload', message, '--wait', '3'],
  )
  await terminal.shows(/^Waiting for the answer, \d s$/m)
  await terminal.shows(/^left with 3$/m)
  expect(await terminal.screen()).not.toContain('Waiting')
})

onTerminal('a chat shows what agents say above the line that is typed (needs tmux)', async () => {
  const { data, send, terminal } = await open()
  await terminal.run('chat', '--group', 'family', '--data', data)
  await terminal.shows(/^>$/m)
  await terminal.type('half a sen')
  send('family', 'send_message', { text: 'evil \u001b[2J\u001b[1;1HOWNED 日本語' })
  await terminal.shows(/evil \\u001b\[2J\\u001b\[1;1HOWNED 日本語\n> half a sen$/m)
  await terminal.type('tence')
  await terminal.press('Enter')
  await terminal.shows(/^> half a sentence$/m)
  await terminal.press('C-d')
  await terminal.shows(/^left with 0$/m)
  await terminal.shows(/^before$/m)
})
