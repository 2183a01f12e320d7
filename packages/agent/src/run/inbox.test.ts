import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { post } from '@hatchway/spool'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { openInbox } from './inbox.ts'

const content = (text: string) =>
  JSON.stringify({
    version: 1,
    type: 'message',
    text,
    sender: 'a',
    sender_name: 'Ann',
    timestamp: '2026-01-31T09:30:00Z',
  })

function open(events: 'auto' | 'off', takesMessages = true) {
  const root = mkdtempSync(join(tmpdir(), 'hatchway-inbox-'))
  const directory = join(root, 'input')
  mkdirSync(directory)
  const seen = {
    taken: [] as string[],
    notices: [] as string[],
    again: [] as string[],
    finished: 0,
    stops: 0,
  }
  const inbox = openInbox({
    directory,
    events,
    takesMessages,
    take: ({ id, text }) => seen.taken.push(`${id} ${text}`),
    finish: () => seen.finished++,
    stopTurn: () => seen.stops++,
    acknowledge: id => seen.again.push(id),
    notice: text => seen.notices.push(text),
  })
  onTestFinished(() => {
    inbox.close()
    rmSync(root, { recursive: true, force: true })
  })
  const put = (name: string, text: string) => post(directory, text, { name })
  const there = (name: string) => existsSync(join(directory, name))
  return { ...seen, seen, directory, inbox, put, there }
}

const soon = { timeout: 20_000, interval: 5 }

describe.each(['auto', 'off'] as const)('with events %s', events => {
  test('messages are taken in the order of their names and keep their files until they are used', async () => {
    const { seen, inbox, put, there } = open(events)
    put('2-b.json', content('second'))
    put('1-a.json', content('first'))
    await vi.waitFor(() => expect(seen.taken).toEqual(['1-a first', '2-b second']), soon)
    expect(there('1-a.json')).toBe(true)
    inbox.used(['1-a'])
    expect(there('1-a.json')).toBe(false)
    expect(there('2-b.json')).toBe(true)
    put('3-c.json', content('third'))
    await vi.waitFor(() => expect(seen.taken).toEqual(['1-a first', '2-b second', '3-c third']), soon)
  })

  test('the wish to finish is heeded once and taken away; what lies beside it is not touched', async () => {
    const { seen, put, there } = open(events)
    put('1-a.json', content('for the next run'))
    put('_close', '')
    await vi.waitFor(() => expect(seen.finished).toBe(1), soon)
    expect(there('_close')).toBe(false)
    put('2-b.json', content('too late'))
    put('_close', '')
    await new Promise(resolve => setTimeout(resolve, 300))
    expect(seen).toMatchObject({ taken: [], finished: 1 })
    expect(there('1-a.json') && there('2-b.json') && there('_close')).toBe(true)
  })
})

test('rubbish is left alone and told of once; messages beside it are taken', async () => {
  const { seen, directory, put, there } = open('off')
  put('1.json', 'not json')
  put('2.json', '{"version":1,"type":"message","text":5}')
  put('3.json', content('fine').replace('"version":1', '"version":2'))
  mkdirSync(join(directory, '4.json'))
  symlinkSync('/etc/passwd', join(directory, '5.json'))
  put('6.txt', content('no message'))
  put('7.json', content('fine'))
  await vi.waitFor(() => expect(seen.taken).toEqual(['7 fine']), soon)
  await vi.waitFor(() => expect(seen.notices).toHaveLength(5), soon)
  await new Promise(resolve => setTimeout(resolve, 300))
  expect(seen.notices).toHaveLength(5)
  expect(seen.notices.join()).not.toContain('root:')
  for (const name of ['1.json', '2.json', '3.json', '4.json', '5.json', '6.txt'])
    expect(there(name)).toBe(true)
})

test('a file that is half written at first is a message once it is whole', async () => {
  const { seen, directory } = open('off')
  const whole = content('late')
  writeFileSync(join(directory, '1.json'), whole.slice(0, 20))
  await new Promise(resolve => setTimeout(resolve, 300))
  expect(seen).toMatchObject({ taken: [], notices: [] })
  writeFileSync(join(directory, '1.json'), whole)
  await vi.waitFor(() => expect(seen.taken).toEqual(['1 late']), soon)
})

test('a message that comes back after it was used is acknowledged again and not taken again', async () => {
  const { seen, inbox, put, there } = open('off')
  put('1.json', content('once'))
  await vi.waitFor(() => expect(seen.taken).toEqual(['1 once']), soon)
  inbox.used(['1'])
  put('1.json', content('once'))
  await vi.waitFor(() => expect(seen.again).toEqual(['1']), soon)
  expect(there('1.json')).toBe(false)
  expect(seen.taken).toEqual(['1 once'])
})

test('a scheduled run takes no messages, but finishes when it is asked to', async () => {
  const { seen, put, there } = open('off', false)
  put('1.json', content('for the chat'))
  await new Promise(resolve => setTimeout(resolve, 300))
  put('_close', '')
  await vi.waitFor(() => expect(seen.finished).toBe(1), soon)
  expect(seen.taken).toEqual([])
  expect(there('1.json')).toBe(true)
})
