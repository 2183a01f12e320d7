import { execFileSync } from 'node:child_process'
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ipcFolder, jsonFiles, onlyFile, playHost, until } from '../mcp/testing.ts'
import { openShellGate, type ShellDecision } from './gate.ts'

/** The host is played, file by file: what it may say instead of yes, and all the ways in which it may say nothing. */
const open = (variables: NodeJS.ProcessEnv = {}, events: 'auto' | 'off' = 'auto') => {
  const host = playHost()
  return { host, gate: openShellGate({ ipc: host.ipc, variables, events }) }
}
/** a host that has to be quick */
const hasty = { HATCHWAY_SHELL_TIMEOUT_MS: '40', HATCHWAY_ANSWER_TIMEOUT_MS: '40' }
const denied = (reason: unknown = expect.any(String)): ShellDecision => ({
  allow: false,
  reason: reason as string,
})
const questionIn = (path: string): { id: string; command: string } => {
  const { id, payload } = JSON.parse(readFileSync(path, 'utf8'))
  return { id, command: payload.command }
}

/** Asks, and has the host take the question before any time has passed. */
const askAndTake = async ({ gate, host }: ReturnType<typeof open>) => {
  // Only the first question has to load something.
  await gate.mayRun(doubtful, AbortSignal.abort())
  const decision = gate.mayRun(doubtful)
  for (let turn = 0; turn < 20; turn++) await null
  return { decision, ...(await host.take()) }
}
const doubtful = 'curl https://example.com'

test('what is harmless passes without a file, even where there is no host', async () => {
  const { gate, host } = open()
  const lost = openShellGate({ ipc: '/nonexistent', variables: {}, events: 'auto' })
  for (const command of ['ls -la', 'cd /tmp && ls | head -3; echo "x"', '']) {
    expect(await gate.mayRun(command)).toEqual({ allow: true, by: 'rules' })
    expect(await lost.mayRun(command)).toEqual({ allow: true, by: 'rules' })
  }
  expect(readdirSync(host.tasks)).toEqual([])
})

test.each(['auto', 'off'] as const)('a clear yes of the host is one, with events %s', async events => {
  const { gate, host } = open({}, events)
  const odd = `curl "$x" 'Grüße\n👋' \\\n | sh`
  const decision = gate.mayRun(odd)
  const { id, type, payload } = await host.take()
  expect({ type, payload }).toEqual({ type: 'check_shell', payload: { command: odd } })
  host.answer(id, { decision: 'allow', note: 'by Ann' })
  expect(await decision).toEqual({ allow: true, by: 'host' })
  expect(jsonFiles(host.responses)).toEqual([])
})

test('the host’s reason for a no is passed on', async () => {
  const { gate, host } = open()
  for (const [code, message] of [
    ['denied', 'Ann said no: not today.'],
    ['expired', 'Nobody decided in time.'],
    ['cancelled', 'It was taken back.'],
    ['unavailable', 'This host has no guard.'],
  ] as const) {
    const decision = gate.mayRun(doubtful)
    host.refuse((await host.take()).id, code, message)
    expect(await decision).toEqual(denied(`${message} (${code})`))
  }
})

describe('a receipt that does not say allow, in this very word and place, is a no', () => {
  const results = [
    {},
    { decision: 'ALLOW' },
    { decision: 'allow ' },
    { decision: ' allow' },
    { decision: 'allow\n' },
    { decision: 'аllow' },
    { decision: 'deny' },
    { decision: '' },
    { decision: true },
    { decision: 1 },
    { decision: null },
    { decision: ['allow'] },
    { decision: { allow: true } },
    { Decision: 'allow' },
    { allow: true },
    { result: { decision: 'allow' } },
    { receipt: { ok: true, result: { decision: 'allow' } } },
  ]
  test.each(results)('%j', async result => {
    const { gate, host } = open()
    const decision = gate.mayRun(doubtful)
    host.answer((await host.take()).id, result)
    expect(await decision).toEqual(denied('the host’s answer does not say that it is allowed'))
  })
})

describe('what is no receipt for the question is a no', () => {
  const yes = (id: string) => ({ version: 1, id, ok: true, result: { decision: 'allow' } })
  const json = (body: (id: string) => unknown) => (path: string, id: string) =>
    writeFileSync(path, JSON.stringify(body(id)))
  const put: Record<string, (path: string, id: string) => void> = {
    'an empty file': path => writeFileSync(path, ''),
    'half a file': (path, id) => writeFileSync(path, JSON.stringify(yes(id)).slice(0, -1)),
    'two documents': (path, id) => writeFileSync(path, `${JSON.stringify(yes(id))}\n{}`),
    'only a word': path => writeFileSync(path, 'allow'),
    'a list': json(id => [yes(id)]),
    'the answer without a receipt around it': json(() => ({ decision: 'allow' })),
    'the answer as other hosts give it': json(() => ({ result: { decision: 'allow' } })),
    'the receipt for another request': json(() => yes('0199a8f0-0000-7000-8000-000000000000')),
    'no id': json(id => ({ ...yes(id), id: undefined })),
    'another version': json(id => ({ ...yes(id), version: 2 })),
    'ok as text': json(id => ({ ...yes(id), ok: 'true' })),
    'ok as a number': json(id => ({ ...yes(id), ok: 1 })),
    'no ok': json(id => ({ ...yes(id), ok: undefined })),
    'a refusal with a yes beside it': json(id => ({ ...yes(id), ok: false })),
    'a result that is text': json(id => ({ ...yes(id), result: 'allow' })),
    'a result that is a list': json(id => ({ ...yes(id), result: ['allow'] })),
    'a yes that is inherited': (path, id) =>
      writeFileSync(path, `{"version":1,"id":"${id}","ok":true,"result":{"__proto__":{"decision":"allow"}}}`),
    'a link to a yes': (path, id) => {
      writeFileSync(`${path}.yes`, JSON.stringify(yes(id)))
      symlinkSync(`${path}.yes`, path)
    },
    'a directory': path => mkdirSync(path),
    'a pipe': path => void execFileSync('mkfifo', [path]),
    'more than anybody says': (path, id) => {
      writeFileSync(path, JSON.stringify(yes(id)))
      truncateSync(path, 20_000_000)
    },
  }
  test.each(Object.entries(put))('%s', async (_, write) => {
    const { gate, host } = open()
    const decision = gate.mayRun(doubtful)
    const { id } = await host.take()
    const made = join(host.ipc, 'made')
    write(made, id)
    renameSync(made, join(host.responses, `${id}.json`))
    expect(await decision).toEqual(denied())
  })
})

describe('no answer is a no', () => {
  test('from a host that is not there; the question is taken back', async () => {
    const { gate, host } = open(hasty)
    expect(await gate.mayRun(doubtful)).toEqual(denied(expect.stringContaining('did not begin')))
    expect(jsonFiles(host.tasks)).toEqual([])
  })

  test('from one that says yes when the time is over; it is told that nobody waits', async () => {
    const { gate, host } = open(hasty)
    const { decision, id } = await askAndTake({ gate, host })
    expect(await decision).toEqual(denied(expect.stringContaining('no answer came within')))
    expect(await onlyFile(host.tasks)).toMatchObject({ type: 'cancel_request', payload: { request_id: id } })
    host.answer(id, { decision: 'allow' })
    // The late yes is not taken for an answer to the same command asked again.
    expect(await gate.mayRun(doubtful)).toEqual(denied())
    expect(jsonFiles(host.responses)).not.toContain(`${id}.json`)
  })

  test('when the yes is for another group', async () => {
    const [own, other] = [open(hasty), open(hasty)]
    const asked = await askAndTake(own)
    const others = await askAndTake(other)
    own.host.answer(others.id, { decision: 'allow' })
    expect(await Promise.all([asked.decision, others.decision])).toEqual([denied(), denied()])
  })

  test('when the asker has given up, before and after it asked', async () => {
    const { gate, host } = open()
    expect(await gate.mayRun(doubtful, AbortSignal.abort())).toEqual(denied())
    const controller = new AbortController()
    const decision = gate.mayRun(doubtful, controller.signal)
    await until(() => jsonFiles(host.tasks).length > 0)
    controller.abort()
    expect(await decision).toEqual(denied(expect.stringContaining('cancelled')))
    expect(jsonFiles(host.tasks)).toEqual([])
  })
})

describe('what cannot be asked is a no, and no file is left', () => {
  const cases: [string, string, NodeJS.ProcessEnv, string][] = [
    ['longer than a command may be', `curl ${'x'.repeat(200_000)}`, {}, '200000 characters'],
    ['larger than the host reads', doubtful, { HATCHWAY_LIMITS_FILE_BYTES: '100' }, '100 bytes'],
    ['half a character', 'echo \ud83d', {}, 'surrogate'],
  ]
  test.each(cases)('%s', async (_, command, variables, reason) => {
    const { gate, host } = open(variables)
    expect(await gate.mayRun(command)).toEqual(denied(expect.stringContaining(reason)))
    expect(jsonFiles(host.tasks)).toEqual([])
  })

  test('no directory to ask through', async () => {
    const { gate, host } = open()
    rmSync(host.tasks, { recursive: true })
    expect(await gate.mayRun(doubtful)).toEqual(denied(expect.stringContaining('cannot be asked')))
  })
})

test('a time limit that is no number is not guessed at', () => {
  for (const text of ['soon', '0', '-1', '1e3', '0x10', '99999999999'])
    expect(() => open({ HATCHWAY_SHELL_TIMEOUT_MS: text })).toThrow('HATCHWAY_SHELL_TIMEOUT_MS')
})

test('many questions at once each get their own answer', async () => {
  const { gate, host } = open()
  const decisions = Array.from({ length: 20 }, (_, index) => gate.mayRun(`curl ${index}`))
  await until(() => jsonFiles(host.tasks).length === 20)
  const files = jsonFiles(host.tasks).map(name => join(host.tasks, name))
  for (const path of files.toReversed()) {
    const { id, command } = questionIn(path)
    if (Number(command.slice(5)) % 2) host.answer(id, { decision: 'allow' })
    else host.refuse(id, 'denied', command)
  }
  expect(await Promise.all(decisions)).toEqual(
    decisions.map((_, index) => (index % 2 ? { allow: true, by: 'host' } : denied(`curl ${index} (denied)`))),
  )
})

test('a hatch that is replaced while it is asked through is a no', async () => {
  const ipc = ipcFolder()
  const gate = openShellGate({ ipc, variables: hasty, events: 'auto' })
  const decision = gate.mayRun(doubtful)
  await until(() => jsonFiles(join(ipc, 'tasks')).length > 0)
  rmSync(ipc, { recursive: true })
  expect(await decision).toEqual(denied())
})
