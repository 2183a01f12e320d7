import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type CommandType, type DialectName, payloads } from '@hatchway/protocol'
import { post } from '@hatchway/spool'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type Live, openLive } from '../../../testing/src/daemon/in-process.ts'
import { guardedService, projectRoot } from '../../../testing/src/paths.ts'
import { until } from '../../../testing/src/until.ts'
import { type ChannelHost, DeliveryError } from '../chat/channels/types.ts'
import { allCommands } from '../commands/testing.ts'
import type { ConfigInput } from '../config.ts'
import { runRow, runStart } from '../runs/run-queue/run-start.ts'
import { wipedAt } from '../store/contexts.ts'
import { openStore } from '../store/sqlite.ts'
import { createContexts } from './contexts.ts'
import { findSharedMounts } from './shared-mounts.ts'

/**
 * Every field that carries text from one group to another, as docs/security.md lists them: on its way out it is
 * searched and gated, and whoever reads it is tainted, or is not shown it.
 */
const rig = mkdtempSync(join(tmpdir(), 'hatchway-crossing-'))
beforeAll(() => {
  process.env.HATCHWAY_RIG_DIR = rig
})
afterAll(() => rmSync(rig, { recursive: true, force: true }))

/** Main groups of every dialect, which see everybody's tasks and groups. */
const readers: Record<string, DialectName> = {
  main: 'hatchway',
  nano: 'nanoclaw',
  nova: 'novabot',
  md: 'mdclaw',
  pyn: 'pynchy',
}

async function open(input: ConfigInput = {}) {
  const live = await openLive({
    ...input,
    services: { plugins: [guardedService] },
    hostJobs: {
      enabled: 'yes',
      directories: [tmpdir()],
      users: process.getuid?.() === 0 ? ['nobody'] : [],
    },
  })
  const add = (folder: string, main: boolean, dialect: DialectName) =>
    live.host.addGroup({ folder, jid: `${folder}@chat`, name: folder, main, dialect })
  for (const [folder, dialect] of Object.entries(readers)) await add(folder, true, dialect)
  await add('boss', true, 'hatchway')
  await add('work', false, 'hatchway')
  await live.start()
  return live
}
const openForTest = async (input?: ConfigInput) => {
  const live = await open(input)
  onTestFinished(() => live.close())
  return live
}

let counter = 0
const send = ({ layout }: Live, folder: string, type: CommandType, payload: object) => {
  const id = `c-${++counter}`
  const message = type === 'send_message' || type === 'react'
  const directory = join(layout.ipc, folder, message ? 'messages' : 'tasks')
  post(directory, JSON.stringify({ version: 1, id, type, payload }))
  return id
}
const answered = async ({ layout }: Live, folder: string, id: string) => {
  const file = join(layout.ipc, folder, 'responses', `${id}.json`)
  await until(`${id} is answered`, () => existsSync(file))
  return JSON.parse(readFileSync(file, 'utf8'))
}
const done = async (live: Live, folder: string, type: CommandType, payload: object) => {
  const answer = await answered(live, folder, send(live, folder, type, payload))
  expect(answer).toMatchObject({ ok: true })
  return answer.result
}
const read = (live: Live, folder: string, ...tools: string[]) =>
  Promise.all(tools.map(tool => done(live, folder, 'call_service', { tool, arguments: {} })))
const approvals = ({ host }: Live) => {
  if (!host.chats?.approvals) throw new Error('there are no approvals')
  return host.chats.approvals
}
/** The number of the approval that a person is asked for, and why. */
const asked = async (live: Live, id: string) => {
  const seqOf = () =>
    live.host
      .services()
      ?.requestQueue.open()
      .find(({ reply }) => reply?.id === id)?.seq ?? -1
  await until(`somebody is asked about ${id}`, () => approvals(live).isAsked(seqOf()))
  return String(seqOf())
}
/** What a main group that has read a page does, once a person has allowed it. */
const allowed = async (live: Live, type: CommandType, payload: object) => {
  await read(live, 'boss', 'read_page')
  const id = send(live, 'boss', type, payload)
  approvals(live).decide(await asked(live, id), { decision: 'allow' })
  const answer = await answered(live, 'boss', id)
  expect(answer).toMatchObject({ ok: true })
  return answer.result
}

/** Everything that lies in a group's part of the hatch. */
const seenBy = ({ layout }: Live, folder: string) =>
  readdirSync(join(layout.ipc, folder), { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => readFileSync(join(entry.parentPath, entry.name), 'utf8'))
    .join('\n')
const taintOf = ({ host }: Live, folder: string) => host.store.taints.of(folder, 'session')
const begin = (live: Live, folder: string, taskId: string | null = null) =>
  createContexts(live.host.store, {
    containsSecrets: () => false,
    ...findSharedMounts(live.config.groups),
  }).begins(folder, {
    taskId,
    shares: [],
  })

const marker = 'zebra'
const schedule = { schedule_type: 'interval', schedule_value: '3600000' } as const
const token = `ghp_${'0123456789abcdefABCD'.repeat(2).slice(0, 36)}`

/** None of the clean readers is shown the text; one that asks for it is, and is tainted. */
async function expectWithheld(
  live: Live,
  from: readonly string[] = Object.keys(readers),
  taint = 'corrupted',
) {
  for (const folder of from) {
    expect(seenBy(live, folder), folder).not.toContain(marker)
    expect(taintOf(live, folder), folder).toEqual({ corrupted: false, secret: false })
  }
  const [first = 'main'] = from
  expect(seenBy(live, first)).toContain('withheld')
  await done(live, first, 'show_withheld', {})
  expect(seenBy(live, first)).toContain(marker)
  expect(taintOf(live, first)).toMatchObject({ [taint]: true })
}

/** A platform that has the chats of all groups, with what it may tell the host. */
async function onPlatform(
  { host }: Live,
  send: (message: { jid: string }) => Promise<void> = async () => {},
): Promise<ChannelHost> {
  const connected = Promise.withResolvers<ChannelHost>()
  await host.chats?.channels.attach({
    name: 'platform',
    messageLimit: 4000,
    reaches: jid => jid.endsWith('@chat'),
    connect: async given => connected.resolve(given),
    async send(message) {
      await send(message)
      return `p${message.id}`
    },
  })
  await host.chats?.connect()
  return connected.promise
}
const ann = { sender: 'ann', senderName: 'Ann', at: 1 }
/** The platform's id of a message, once the chat has it. */
const delivered = async ({ host: { store } }: Live, id: number) => {
  await until('it is delivered', () => store.messages({ after: id - 1, limit: 1 })[0]?.status === 'sent')
  return `p${id}`
}
/** Says something in a group's chat by its agent; the platform's id of it. */
const saidBy = async (live: Live, folder: string, payload: object) => {
  const { message_id } = await done(live, folder, 'send_message', payload)
  return delivered(live, Number(message_id))
}
const heardBy = ({ host }: Live, folder: string) =>
  JSON.stringify(host.store.agents.incoming({ group: folder }))

/** All that a group's agent is told when its turn, in which this happened, was interrupted and begins anew. */
const toldAfter = async (
  { host: { store }, config }: Live,
  folder: string,
  happening: () => Promise<void>,
) => {
  const { agents } = store
  const group = store.group(folder)
  if (!group) throw new Error(`there is no group ${folder}`)
  const said = { group: folder, jid: group.jid, channel: 'platform', externalId: null, text: 'go on' }
  const id = agents.receive({ ...said, ...ann, status: 'waiting', createdAt: Date.now() }) ?? 0
  const begin = (run: string) => {
    const rows = agents.incoming({ group: folder, status: 'waiting' })
    const isKept = { wipedAt: (of: string) => Number(store.meta(wipedAt(of)) ?? 0), now: Date.now }
    const lately = () => store.latestMessages({ group: folder, limit: 100, characters: 1_000_000 }).rows
    const given = { id: run, group, rows, job: undefined }
    return { given, start: runStart({ config, store: agents, lately, ...isKept }, given, []) }
  }
  const { given, start } = begin(`${folder}-1`)
  agents.insertRun(runRow(given, start, Date.now()), [id])
  await happening()
  agents.giveBack(start.run_id)
  agents.updateRun(start.run_id, { status: 'failed', endedAt: Date.now() })
  const again = begin(`${folder}-2`).start
  expect(again.notices?.join()).toContain('was interrupted')
  return JSON.stringify(again)
}

/** Somebody whose every word is a stranger's asks to be let in; the message that the operator gets in main's chat. */
const askToBeLetIn = ({ host }: Live, asker = `${marker}@chat`) => {
  const eve = { sender: marker, senderName: marker, at: 1 }
  host.chats?.pairing.asked('platform', { jid: asker, ...eve, text: marker })
  const request = host.store
    .messages({})
    .find(({ jid, text }) => jid === 'main@chat' && text.includes(marker))
  if (!request) throw new Error('the operator is not asked')
  return request
}
async function expectNameWithheld() {
  const live = await openForTest()
  await onPlatform(live)
  askToBeLetIn(live, 'eve@chat')
  await live.host.chats?.pairing.approve('eve@chat', { folder: 'eve' }, 'operator')
  expect(live.host.store.group('eve')?.name).toBe(marker)
  await expectWithheld(live)
}
async function expectRequestNotQuoted() {
  const live = await openForTest()
  const platform = await onPlatform(live)
  const { id: request, text } = askToBeLetIn(live)
  const id = await delivered(live, request)
  const quote = { id, text }
  await platform.receive({ jid: 'main@chat', ...ann, text: 'who is this?', quote })
  await platform.reacted({ jid: 'main@chat', ...ann, to: id, emoji: '🎉' })
  expect(heardBy(live, 'main')).toMatch(/who is this.*🎉/)
  expect(heardBy(live, 'main')).not.toContain(marker)
}
async function expectRequestNotTold() {
  const live = await openForTest()
  // Their own server may refuse what we answer them, in words of theirs.
  const send = async ({ jid }: { jid: string }) => {
    if (jid.includes(marker)) throw new DeliveryError(marker, { isFinal: true })
  }
  await onPlatform(live, send)
  const told = await toldAfter(live, 'main', async () => {
    askToBeLetIn(live)
    await saidBy(live, 'main', { text: 'giraffe' })
    await until('the answer has failed', () => live.host.store.messages({ status: 'failed' }).length > 0)
  })
  // What its own agent said meanwhile it is told.
  expect(told).toContain('giraffe')
  expect(told).not.toContain(marker)
  expect(heardBy(live, 'main')).not.toContain(marker)
}

/** How a card ended is told to people by the host, where they do not see it change. */
async function expectHostsWordsNotTheAgents() {
  const live = await openForTest()
  const platform = await onPlatform(live)
  const ending = () => live.host.store.messages({}).find(({ text }) => text.includes(marker))
  const told = await toldAfter(live, 'boss', async () => {
    await read(live, 'boss', 'read_page')
    const id = send(live, 'boss', 'register_group', newGroup)
    approvals(live).decide(await asked(live, id), { decision: 'deny', words: marker })
    await answered(live, 'boss', id)
    expect(ending()?.text).toContain('has said no')
  })
  expect(told).toContain('You had sent nothing yet.')
  const id = await delivered(live, ending()?.id ?? 0)
  await platform.receive({ jid: 'boss@chat', ...ann, text: 'why?', quote: { id, text: marker } })
  expect(heardBy(live, 'boss')).toContain('"senderName":"Hatchway"')
  expect(heardBy(live, 'boss')).not.toContain(marker)
}

type Field = [name: string, payload: (text: string) => object]
interface Row {
  type?: CommandType
  /** where an agent can put text that gets to others */
  out?: readonly Field[]
  /** what becomes of whoever it gets to */
  in?: () => Promise<void>
}

const toWork = { group: 'work', prompt: 'p', ...schedule }
const daily = { name: 'Daily', schedule: '0 7 * * *', prompt: 'p' }
const newGroup = { jid: 'new@chat', name: 'New', folder: 'new' }
const inWork = { jid: 'work@chat', text: 't' }

const rows: Record<string, Row> = {
  '`send_message` to another chat': {
    type: 'send_message',
    out: [
      ['text', text => ({ ...inWork, text })],
      ['sender', sender => ({ ...inWork, sender })],
      ['speech', text => ({ ...inWork, speech: { text } })],
      ['file name', name => ({ ...inWork, attachments: [{ path: 'a.txt', name }] })],
      ['path', path => ({ ...inWork, attachments: [{ path }] })],
    ],
    async in() {
      const live = await openForTest()
      await done(live, 'main', 'send_message', { ...inWork, text: marker })
      expect(seenBy(live, 'work')).not.toContain(marker)
      expect(live.host.store.agents.incoming({ group: 'work' })).toEqual([])
    },
  },
  '`react` in another chat': { type: 'react', out: [['emoji', emoji => ({ jid: 'work@chat', emoji })]] },
  '`schedule_task` for another group': {
    type: 'schedule_task',
    out: [
      ['prompt', prompt => ({ ...toWork, prompt })],
      ['script', script => ({ ...toWork, script })],
      ['model', model => ({ ...toWork, model })],
      ['task_id', task_id => ({ ...toWork, task_id })],
    ],
    async in() {
      const live = await openForTest()
      const more = { prompt: marker, script: marker, model: marker }
      const { task_id } = await allowed(live, 'schedule_task', { ...toWork, ...more })
      expect(seenBy(live, 'work')).not.toContain(marker)
      await expectWithheld(live)
      begin(live, 'work', task_id)
      expect(taintOf(live, 'work')).toMatchObject({ corrupted: true })
    },
  },
  '`update_task` of another group': {
    type: 'update_task',
    out: [
      ['prompt', prompt => ({ task_id: 'theirs', prompt })],
      ['script', script => ({ task_id: 'theirs', script })],
      ['model', model => ({ task_id: 'theirs', model })],
    ],
    async in() {
      const live = await openForTest()
      await done(live, 'work', 'schedule_task', { ...schedule, prompt: 'p', task_id: 'theirs' })
      await allowed(live, 'update_task', { task_id: 'theirs', prompt: marker })
      await expectWithheld(live, [...Object.keys(readers), 'work'])
    },
  },
  '`create_periodic_agent`': {
    type: 'create_periodic_agent',
    out: [
      ['name', name => ({ ...daily, name })],
      ['prompt', prompt => ({ ...daily, prompt })],
      ['instructions', instructions => ({ ...daily, instructions })],
      ['jid', jid => ({ ...daily, jid })],
    ],
    async in() {
      const live = await openForTest()
      const more = { name: 'Daily', prompt: marker, jid: `${marker}@chat`, instructions: marker }
      const { folder } = await allowed(live, 'create_periodic_agent', { ...daily, ...more })
      // The instructions lie in its folder from now on.
      expect(taintOf(live, folder)).toMatchObject({ corrupted: true })
      await expectWithheld(live)
    },
  },
  '`register_group`': {
    type: 'register_group',
    out: [
      ['name', name => ({ ...newGroup, name })],
      ['jid', jid => ({ ...newGroup, jid })],
      ['trigger', trigger => ({ ...newGroup, trigger })],
      ['channel', channel => ({ ...newGroup, channel })],
      ['folder', folder => ({ ...newGroup, folder })],
    ],
    async in() {
      const live = await openForTest()
      const more = { name: marker, jid: `${marker}@chat`, trigger: marker, channel: marker }
      await allowed(live, 'register_group', { ...newGroup, ...more })
      await expectWithheld(live)
      begin(live, 'new')
      expect(taintOf(live, 'new')).toMatchObject({ corrupted: true })
    },
  },
  'tasks of a group': {
    async in() {
      const live = await openForTest()
      await read(live, 'work', 'read_page')
      const { task_id } = await done(live, 'work', 'schedule_task', {
        prompt: marker,
        script: marker,
        ...schedule,
      })
      // Its own words are shown to it.
      expect(seenBy(live, 'work')).toContain(marker)
      await done(live, 'work', 'update_task', { task_id, model: marker })
      await expectWithheld(live)
    },
  },
  'tasks of a group with secrets': {
    async in() {
      const live = await openForTest({ groups: { work: { containsSecrets: true } } })
      await done(live, 'work', 'schedule_task', { prompt: marker, ...schedule })
      await expectWithheld(live, undefined, 'secret')
    },
  },
  'results of tasks': {
    async in() {
      const live = await openForTest()
      const { agents } = live.host.store
      const { task_id: taskId } = await done(live, 'work', 'schedule_task', { prompt: 'p', ...schedule })
      const end = (id: string, result: string) => {
        const none = { runId: null, startedAt: null, endedAt: null, result: null, error: null }
        const about = { id, taskId, group: 'work', dueAt: 1, manual: true, claimedAt: 1, ...none }
        agents.insertOccurrence({ ...about, status: 'running' })
        agents.endOccurrence(id, { status: 'done', result, error: null, endedAt: 2 })
        return live.host.perform({ type: 'pause_task', payload: { task_id: taskId } })
      }
      await end('o-1', 'water')
      await done(live, 'work', 'resume_task', { task_id: taskId })
      expect(seenBy(live, 'main')).toContain('water')
      await read(live, 'work', 'read_page')
      await end('o-2', marker)
      await done(live, 'work', 'resume_task', { task_id: taskId })
      await expectWithheld(live)
      // Wiping its folder does not make the result clean.
      live.host.clearTaint('work', 'session')
      await done(live, 'nano', 'refresh_groups', {})
      expect(seenBy(live, 'nano')).not.toContain(marker)
    },
  },
  '`schedule_host_job`': {
    type: 'schedule_host_job',
    out: [
      ['name', name => ({ name, command: 'true', ...schedule })],
      ['command', command => ({ name: 'n', command, ...schedule })],
    ],
    async in() {
      const live = await openForTest()
      await allowed(live, 'schedule_host_job', { name: marker, command: marker, ...schedule })
      await expectWithheld(live)
    },
  },
  '`pause_task`, `resume_task`, `cancel_task`, `unregister_group`': {
    async in() {
      for (const type of ['pause_task', 'resume_task', 'cancel_task'] as const) {
        expect(Object.keys(payloads[type].shape)).toEqual(['task_id'])
      }
      expect(Object.keys(payloads.unregister_group.shape)).toEqual(['jid'])
    },
  },
  'quotes and reactions of people': {
    async in() {
      const live = await openForTest()
      const platform = await onPlatform(live)
      const answer = async (id: string, text: string) => {
        await platform.receive({ jid: 'work@chat', ...ann, text: 'what is this?', quote: { id, text } })
        await platform.reacted({ jid: 'work@chat', ...ann, to: id, emoji: '🎉' })
      }
      const foreign = await saidBy(live, 'main', { ...inWork, text: marker })
      await answer(foreign, marker)
      expect(heardBy(live, 'work')).toContain('what is this?')
      expect(heardBy(live, 'work')).not.toContain(marker)
      // Its own words it may read, until it is wiped.
      const own = await saidBy(live, 'work', { text: 'giraffe' })
      await answer(own, 'giraffe')
      expect(heardBy(live, 'work').match(/giraffe/g)).toHaveLength(2)
      live.host.store.setMeta(wipedAt('work'), String(Date.now() + 1))
      await answer(own, marker)
      expect(heardBy(live, 'work')).not.toContain(marker)
    },
  },
  'names of chats': {
    async in() {
      const live = await openForTest({ groups: { closed: { senders: ['ann'] } } })
      const platform = await onPlatform(live)
      await live.host.addGroup({
        folder: 'closed',
        jid: 'closed@chat',
        name: 'closed',
        main: false,
        dialect: 'hatchway',
      })
      for (const folder of ['work', 'closed']) {
        for (const name of [folder, marker]) platform.knows({ jid: `${folder}@chat`, name, isGroup: true })
      }
      // Its agent would be told the name by people whom it does not hear.
      expect(live.host.store.group('closed')?.name).toBe('closed')
      expect(live.host.store.group('work')?.name).toBe(marker)
      await done(live, 'boss', 'refresh_groups', {})
      await expectWithheld(live)
      // It hears these people anyway.
      begin(live, 'work')
      expect(taintOf(live, 'work')).toEqual({ corrupted: false, secret: false })
    },
  },
  'who asks to be let in': {
    async in() {
      await expectNameWithheld()
      await expectRequestNotQuoted()
      await expectRequestNotTold()
    },
  },
  'cards in the chat of another group (`approvalChat`)': {
    async in() {
      const live = await openForTest({ groups: { boss: { approvalChat: 'work@chat' } } })
      const platform = await onPlatform(live)
      const withMarker = () =>
        live.host.store.messages({}).filter(({ jid, text }) => jid === 'work@chat' && text.includes(marker))
      const told = await toldAfter(live, 'work', async () => {
        await read(live, 'boss', 'read_page')
        const id = send(live, 'boss', 'register_group', { ...newGroup, name: marker })
        approvals(live).decide(await asked(live, id), { decision: 'deny', words: marker })
        expect(await answered(live, 'boss', id)).toMatchObject({ ok: false, error: { code: 'denied' } })
      })
      // The card, and how it ended, are for the people there.
      expect(withMarker()).toHaveLength(2)
      expect(told).toContain('You had sent nothing yet.')
      for (const { id, text } of withMarker()) {
        const quote = { id: await delivered(live, id), text }
        await platform.receive({ jid: 'work@chat', ...ann, text: 'why?', quote })
        await platform.reacted({ jid: 'work@chat', ...ann, to: quote.id, emoji: '🎉' })
      }
      expect(heardBy(live, 'work')).toMatch(/why\?.*🎉/)
      for (const words of [told, heardBy(live, 'work'), seenBy(live, 'work')])
        expect(words).not.toContain(marker)
      begin(live, 'work')
      expect(taintOf(live, 'work')).toEqual({ corrupted: false, secret: false })
    },
  },
  '`sender`, as the name of a bot': {
    async in() {
      const live = await openForTest({ groups: { Work: { containsSecrets: true } } })
      const platform = await onPlatform(live)
      expect(platform.mayShowElsewhere('work@chat')).toBe(false)
      expect(platform.mayShowElsewhere('main@chat')).toBe(true)
      await read(live, 'main', 'read_diary')
      expect(platform.mayShowElsewhere('main@chat')).toBe(false)
      expect(platform.mayShowElsewhere('nobody@chat')).toBe(false)
    },
  },
  'mounts of yours': {
    async in() {
      const from = mkdtempSync(join(tmpdir(), 'hatchway-mount-'))
      onTestFinished(() => rmSync(from, { recursive: true }))
      const below = join(from, 'below')
      mkdirSync(below)
      const mount = (path: string, writable = false) => ({
        mounts: [{ from: path, to: '/shared', writable }],
      })
      const live = await openForTest({
        groups: { work: mount(from, true), nano: mount(below), nova: mount(tmpdir()) },
      })
      await read(live, 'work', 'read_page')
      // From this moment on, and with its next run for good.
      const id = send(live, 'nano', 'schedule_task', { ...toWork })
      expect(await asked(live, id)).toBeDefined()
      for (const folder of ['nano', 'nova', 'md']) begin(live, folder)
      expect(taintOf(live, 'nano')).toMatchObject({ corrupted: true })
      expect(taintOf(live, 'nova')).toMatchObject({ corrupted: true })
      expect(taintOf(live, 'md')).toMatchObject({ corrupted: false })
    },
  },
  'todos and memories': {
    async in() {
      const live = await openForTest()
      await done(live, 'work', 'call_service', { tool: 'add_todo', arguments: { content: marker } })
      await done(live, 'main', 'call_service', { tool: 'list_todos', arguments: {} })
      expect(seenBy(live, 'main')).not.toContain(marker)
    },
  },
  'answers and notices of the host': {
    async in() {
      const live = await openForTest()
      await live.host.addGroup({
        folder: 'other',
        jid: 'other@chat',
        name: marker,
        main: false,
        dialect: 'hatchway',
      })
      await done(live, 'work', 'schedule_task', { ...schedule, prompt: marker, task_id: 'theirs' })
      const asks: [CommandType, object][] = [
        ['schedule_task', { ...schedule, prompt: 'p', task_id: 'theirs' }],
        ['register_group', { ...newGroup, jid: 'other@chat' }],
        ['register_group', { ...newGroup, folder: 'other' }],
        ['pause_task', { task_id: 'theirs' }],
        ['unregister_group', { jid: 'other@chat' }],
      ]
      for (const [type, payload] of asks) {
        expect(JSON.stringify(await answered(live, 'boss', send(live, 'boss', type, payload)))).not.toContain(
          marker,
        )
      }
      await expectHostsWordsNotTheAgents()
    },
  },
}

describe('on the way out', () => {
  const all = Object.entries(rows).flatMap(([row, { type, out = [] }]) =>
    out.map(([field, payload]) => ({ row, field, type: type ?? 'deploy', payload })),
  )
  let live: Live
  beforeAll(async () => {
    live = await open()
    // A card names files by their content, so they have to be there.
    for (const folder of ['main', 'boss'])
      for (const name of ['a.txt', token, 'harmless'])
        writeFileSync(join(live.layout.groups, folder, name), 'nothing to hide')
    await done(live, 'work', 'schedule_task', { ...schedule, prompt: 'p', task_id: 'theirs' })
    await read(live, 'boss', 'read_page', 'read_diary')
  })
  afterAll(() => live.close())

  /** They look like secrets too often: see what is not seen, in the documents. */
  const ids = ['task_id', 'jid', 'folder']
  const texts = all.filter(({ field }) => !ids.includes(field))

  test.each(texts)('$row: a secret in $field is found', async ({ type, payload }) => {
    const id = send(live, 'main', type, payload(token))
    const card = await asked(live, id)
    const said = live.host.store.messages({}).filter(({ kind }) => kind === 'approval')
    expect(said.at(-1)?.text).toMatch(/looks like a secret/)
    approvals(live).decide(card, { decision: 'deny' })
    expect(await answered(live, 'main', id)).toMatchObject({ ok: false, error: { code: 'denied' } })
  })

  test.each(all)('$row: $field waits for a person after what was read', async ({ type, payload }) => {
    const id = send(live, 'boss', type, payload('harmless'))
    approvals(live).decide(await asked(live, id), { decision: 'deny' })
    expect(await answered(live, 'boss', id)).toMatchObject({ ok: false, error: { code: 'denied' } })
  })
})

describe('on the way in', () => {
  const all = Object.entries(rows).flatMap(([row, { in: check }]) => (check ? [{ row, check }] : []))
  test.each(all)('$row', ({ check }) => check())
})

test('the table in the documents has these rows, and those that other tests prove', () => {
  const text = readFileSync(join(projectRoot, 'docs', 'security.md'), 'utf8')
  const [, table = ''] = text.split('### Text that crosses groups')
  const fields = [...(table.split('\n###')[0]?.matchAll(/^\| (.+?) +\|/gm) ?? [])].map(([, field]) => field)
  const elsewhere = ['commits and their subjects', '`reset_context`, `deploy`', '`groups/global`', 'services']
  expect(fields.slice(2).toSorted()).toEqual([...Object.keys(rows), ...elsewhere].toSorted())
})

test('every command that can act on another group is in the table', () => {
  const listed = Object.keys(rows).join()
  const own = ['refresh_groups', 'deploy', 'reset_context', 'finished_work', 'sync_worktree', 'call_service']
  const known = allCommands(openStore({ path: ':memory:', durability: 'process' }))
  const rest = known
    .map(({ type }) => type)
    .filter(type => !listed.includes(`\`${type}\``) && !own.includes(type))
  expect(rest).toEqual(['show_withheld', 'ask_user', 'cancel_request', 'check_shell'])
})

test('what was asked before a wipe is not answered from memory: whoever asks anew is tainted anew', async () => {
  const live = await openForTest()
  const { store } = live.host
  const id = send(live, 'work', 'call_service', { tool: 'read_page', arguments: {} })
  await answered(live, 'work', id)
  const file = join(live.layout.ipc, 'work', 'responses', `${id}.json`)
  const ask = async () => {
    rmSync(file)
    const content = { version: 1, id, type: 'call_service', payload: { tool: 'read_page', arguments: {} } }
    post(join(live.layout.ipc, 'work', 'tasks'), JSON.stringify(content))
    await answered(live, 'work', id)
  }
  await ask()
  // As a wipe leaves it.
  await new Promise(resolve => setTimeout(resolve, 5))
  store.setMeta(wipedAt('work'), String(Date.now()))
  live.host.clearTaint('work', 'session')
  await ask()
  expect(taintOf(live, 'work')).toMatchObject({ corrupted: true })
})
