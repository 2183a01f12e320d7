import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RunStart } from '@hatchway/protocol'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { bundleShells } from '../../bundle.ts'
import { jsonFiles, playHost, temporaryFolder } from '../mcp/testing.ts'
import { readEnvironment } from '../run/environment.ts'
import { command } from './command.ts'
import type { DriverContext } from './types.ts'

const shells = mkdtempSync(join(tmpdir(), 'hatchway-shells-'))
beforeAll(() => bundleShells(shells))
afterAll(() => rmSync(shells, { recursive: true, force: true }))

/** A turn of an agent that is a program, which runs commands as such agents do. */
async function open(program: readonly string[], gate: string | undefined) {
  const host = playHost()
  const events: Parameters<DriverContext['emit']>[0][] = []
  const start: RunStart = {
    version: 1,
    run_id: 'run-1',
    kind: 'task',
    group: { folder: 'family', name: 'Family', jid: 'family@chat', main: false },
    assistant: 'Hatch',
    timezone: 'Europe/Berlin',
    session_id: null,
    model: null,
    task: null,
    context: [],
    driver: { name: 'command', command: [...program] },
    events: 'auto',
    inputs: [],
  }
  const variables = {
    PATH: process.env.PATH,
    HATCHWAY_IPC: host.ipc,
    HATCHWAY_GROUP_DIR: temporaryFolder(),
    ...(gate === undefined ? {} : { HATCHWAY_SHELL_GATE: gate }),
  }
  const abort = new AbortController().signal
  const environment = readEnvironment(variables)
  const session = await command({ start, environment, abort, emit: event => events.push(event) })
  const turn = async () => {
    const input = { id: 'i', text: 'go', sender: 's', sender_name: 'S', timestamp: '' }
    session.feed([input])
    await session.finish()
    return events.at(-1)
  }
  return { host, turn, session, events }
}

/** Both by name and through SHELL; the program itself is a shell, too. */
const agent = ['sh', '-c', 'cat >/dev/null; bash -c "eval echo one"; $SHELL -c "eval echo two"']

test('the shells of an agent ask first, and the program that is the agent does not', async () => {
  const { host, turn } = await open(agent, shells)
  const ended = turn()
  const first = await host.take()
  expect(first).toMatchObject({ type: 'check_shell', payload: { command: 'eval echo one' } })
  host.answer(first.id, { decision: 'allow' })
  const second = await host.take()
  expect(second.payload).toEqual({ command: 'eval echo two' })
  host.refuse(second.id, 'denied', 'Not this.')
  expect(await ended).toMatchObject({ type: 'error', message: expect.stringContaining('Not this. (denied)') })
})

test('a turn that is stopped ends without an answer, what waited is dropped, and the next turn is told', async () => {
  const slow = ['sh', '-c', 'text=$(cat); case $text in *nap*) sleep 600;; esac; echo "$text"']
  const { session, events } = await open(slow, undefined)
  const say = (id: string, text: string) =>
    session.feed([{ id, text, sender: 's', sender_name: 'S', timestamp: '' }])
  say('1', 'nap')
  say('2', 'dropped')
  session.stopTurn()
  await vi.waitFor(() => expect(events.at(-1)).toMatchObject({ type: 'result', text: null }))
  say('3', 'go on')
  await session.finish()
  expect(events.map(event => (event.type === 'used' ? event.inputs : event.type))).toEqual([
    ['1'],
    'result',
    ['3'],
    'result',
  ])
  expect(events.at(-1)).toMatchObject({
    text: expect.stringContaining('A person stopped your last turn before it was finished.'),
  })
})

test('where the host wants no such shells there are none', async () => {
  const { host, turn } = await open(['sh', '-c', 'cat >/dev/null; bash -c "eval echo one"'], undefined)
  expect(await turn()).toMatchObject({ type: 'result', text: 'one' })
  expect(jsonFiles(host.tasks)).toEqual([])
})

test('an agent whose shells are missing is not started', async () => {
  await expect(open(agent, '/no/such/place')).rejects.toThrow('not at /no/such/place')
})
