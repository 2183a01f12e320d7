import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { type Handover, handoverFile, readHandover, writeHandover } from './handover.ts'
import { supervise } from './supervise.ts'
import { makeRepository } from './testing.ts'

/** What stands in for the daemon: a few lines that are told where the hand-over and their own notes are. */
const beginning = `
const fs = require('node:fs')
const path = process.env.HATCHWAY_HANDOVER
const note = text => fs.appendFileSync(process.env.NOTES, text + '\\n')
const say = change => {
  const now = JSON.parse(fs.readFileSync(path, 'utf8'))
  fs.writeFileSync(path + '.new', JSON.stringify({ ...now, ...change }))
  fs.renameSync(path + '.new', path)
}
const status = () => fs.existsSync(path) ? JSON.parse(fs.readFileSync(path, 'utf8')).status : 'none'
const stay = () => setInterval(() => {}, 1000)
process.on('disconnect', () => process.exit())
process.on('SIGTERM', () => { note('asked to end'); process.exit() })
`
const patience = { timeout: 20_000 }

function open(program: string) {
  const home = mkdtempSync(join(tmpdir(), 'hatchway-supervise-'))
  const directory = join(home, 'project')
  const notes = join(home, 'notes')
  const path = handoverFile(join(home, 'data'))
  mkdirSync(join(home, 'data', 'state'), { recursive: true })
  mkdirSync(directory)
  const { git, commit } = makeRepository(directory)
  const from = commit('one')
  const to = commit('two')
  const handover: Handover = {
    id: 1,
    from,
    to,
    directory,
    build: ['cp name built'],
    commandMs: 10_000,
    healthMs: 20_000,
    status: 'restarting',
    reason: null,
  }
  const end = new AbortController()
  const said: string[] = []
  let running: Promise<void> | undefined
  const start = (times = {}) => {
    running = supervise({
      handover: path,
      command: [process.execPath, '-e', `${beginning}${program}`],
      isForeign: false,
      environment: { ...process.env, NOTES: notes },
      end: end.signal,
      say: (_, message) => said.push(message),
      times: { firstPauseMs: 20, longestPauseMs: 100, pollMs: 20, stopMs: 5000, ...times },
    })
    return running
  }
  const stop = async () => {
    end.abort('SIGTERM')
    await running
  }
  onTestFinished(async () => {
    await stop().catch(() => {})
    rmSync(home, { recursive: true, force: true })
  })
  return {
    path,
    directory,
    handover,
    git,
    start,
    stop,
    said,
    notes: () => (existsSync(notes) ? readFileSync(notes, 'utf8').trim().split('\n') : []),
    status: () => readHandover(path)?.status,
  }
}

test('what ends is started again, after pauses that grow, until somebody ends it', async () => {
  const one = open(`note('started'); process.exit(1)`)
  one.start()
  await vi.waitFor(() => expect(one.notes().length).toBeGreaterThan(5), patience)
  await one.stop()
  const pauses = one.said.flatMap(line => /started again in ([\d.]+) s/.exec(line)?.[1] ?? [])
  expect(pauses.slice(0, 5)).toEqual(['0.02', '0.04', '0.08', '0.1', '0.1'])
})

test('a supervisor whose data directory is gone ends, and begins no new one', async () => {
  const one = open(`note('started'); process.exit(1)`)
  const ended = one.start().catch(error => error.message)
  await vi.waitFor(() => expect(one.notes().length).toBeGreaterThan(0), patience)
  rmSync(dirname(dirname(one.path)), { recursive: true })
  expect(await ended).toMatch(/^The data directory .* is gone\.$/)
})

test('one that stays is asked to end, and made to where it does not', async () => {
  const one = open(`note('started'); stay()`)
  one.start()
  await vi.waitFor(() => expect(one.notes()).toEqual(['started']), patience)
  await one.stop()
  expect(one.notes()).toEqual(['started', 'asked to end'])

  const deaf = open(
    `process.removeAllListeners('SIGTERM').on('SIGTERM', () => note('no')); note('started'); stay()`,
  )
  deaf.start({ stopMs: 300 })
  await vi.waitFor(() => expect(deaf.notes()).toEqual(['started']), patience)
  await deaf.stop()
  expect(deaf.notes()).toEqual(['started', 'no'])
})

test('a revision that says that it is up stays, whatever happens to it later', async () => {
  const one = open(
    `note(status()); if (status() === 'restarting') { say({ status: 'up' }); process.exit(1) } stay()`,
  )
  writeHandover(one.path, one.handover)
  expect(statSync(one.path).mode & 0o777).toBe(0o600)
  one.start()
  await vi.waitFor(() => expect(one.notes()).toEqual(['restarting', 'up']), patience)
  expect(one.git('rev-parse', 'HEAD')).toBe(one.handover.to)
})

test('one that comes up and hands over again before anybody has looked has come up', async () => {
  const one = open(`
    const { id } = JSON.parse(fs.readFileSync(path, 'utf8'))
    note(id + ' ' + status())
    say({ status: 'up' })
    if (id === 1) { say({ id: 2, status: 'restarting' }); process.exit(75) }
    stay()`)
  writeHandover(one.path, one.handover)
  one.start({ pollMs: 60_000 })
  await vi.waitFor(() => expect(one.notes()).toHaveLength(2), patience)
  expect(one.notes()).toEqual(['1 restarting', '2 restarting'])
  expect(one.git('rev-parse', 'HEAD')).toBe(one.handover.to)
})

test('one that does not is left for the one before, once, even if that does not come up either', async () => {
  const one = open(`note(status() + ' ' + fs.existsSync('x')); console.error('oh no'); process.exit(9)`)
  writeHandover(one.path, one.handover)
  one.start()
  await vi.waitFor(() => expect(one.notes().length).toBeGreaterThan(4), patience)
  await one.stop()
  expect(one.notes().slice(0, 4)).toEqual(['restarting false', ...Array(3).fill('rolled_back false')])
  expect(one.git('rev-parse', 'HEAD')).toBe(one.handover.from)
  expect(one.git('rev-parse', 'main')).toBe(one.handover.to)
  expect(readFileSync(join(one.directory, 'built'), 'utf8')).toBe('one')
  expect(readHandover(one.path)).toMatchObject({
    status: 'rolled_back',
    reason: 'it ended with code 9. Its last words:\noh no',
  })
  expect(one.said.join('\n')).toContain('written by a newer Hatchway')
})

test('a roll-back whose build fails is started all the same, and one without a checkout stays where it is', async () => {
  const one = open(`note(status()); process.exit(1)`)
  writeHandover(one.path, { ...one.handover, build: ['echo no room; exit 1', 'touch never'] })
  one.start()
  await vi.waitFor(() => expect(one.notes()).toContain('rolled_back'), patience)
  expect(readHandover(one.path)?.reason).toContain('no room')
  expect(existsSync(join(one.directory, 'never'))).toBe(false)

  const gone = open(`note(status()); if (status() === 'failed') { stay() } else process.exit(1)`)
  writeHandover(gone.path, { ...gone.handover, from: 'f'.repeat(40) })
  gone.start()
  await vi.waitFor(() => expect(gone.notes()).toEqual(['restarting', 'failed']), patience)
  expect(gone.git('rev-parse', '--abbrev-ref', 'HEAD')).toBe('main')
})

test('changes to tracked files are not in the way of a roll-back, and are not lost', async () => {
  const one = open(`note(status()); if (status() === 'rolled_back') { stay() } else process.exit(1)`)
  writeFileSync(join(one.directory, 'name'), 'somebody’s')
  writeHandover(one.path, { ...one.handover, build: [] })
  one.start()
  await vi.waitFor(() => expect(one.notes()).toEqual(['restarting', 'rolled_back']), patience)
  expect(readFileSync(join(one.directory, 'name'), 'utf8')).toBe('one')
  expect(one.git('show', 'stash@{0}:name')).toBe('somebody’s')
})

test('with nothing to go back to, nothing is checked out', async () => {
  const one = open(`note(status()); if (status() === 'failed') { stay() } else process.exit(1)`)
  writeHandover(one.path, { ...one.handover, from: one.handover.to })
  one.start()
  await vi.waitFor(() => expect(one.notes()).toEqual(['restarting', 'failed']), patience)
  expect(one.git('rev-parse', '--abbrev-ref', 'HEAD')).toBe('main')
})

test('ended while it goes back, it leaves that for the next one', async () => {
  const one = open(`note(status()); stay()`)
  writeHandover(one.path, {
    ...one.handover,
    status: 'rolling_back',
    reason: 'it hung.',
    build: ['touch building; exec sleep 1000'],
  })
  one.start()
  await vi.waitFor(() => expect(existsSync(join(one.directory, 'building'))).toBe(true), patience)
  await one.stop()
  expect(one.notes()).toEqual([])
  expect(one.status()).toBe('rolling_back')
})

test('two of them do not look after one data directory', async () => {
  const one = open(`note('started'); stay()`)
  one.start()
  await vi.waitFor(() => expect(one.notes()).toEqual(['started']), patience)
  await expect(
    supervise({
      handover: one.path,
      command: [process.execPath, '-e', ''],
      isForeign: false,
      environment: process.env,
      end: new AbortController().signal,
      say: () => {},
    }),
  ).rejects.toThrow('Another supervisor')
  expect(one.notes()).toEqual(['started'])
})

test('a hand-over that nobody could have written is none', () => {
  const one = open('')
  for (const text of ['', '{', 'null', '[]', '{"status":"restarting"}', '{"id":"1","status":"up"}']) {
    writeFileSync(one.path, text)
    expect(readHandover(one.path)).toBe(undefined)
  }
})
