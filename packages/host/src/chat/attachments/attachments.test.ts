import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { post } from '@hatchway/spool'
import { expect, onTestFinished, test } from 'vitest'
import { openLive } from '../../../../testing/src/daemon/in-process.ts'
import { until } from '../../../../testing/src/until.ts'
import { createApi } from '../../api/app.ts'
import { entriesAnswer, fileAnswer } from '../../api/chat-answers.ts'
import type { ConfigInput } from '../../config.ts'

/** A host in this process: files are dropped by hand, and people use the routes that the browser does. */
let counter = 0

async function open(input: ConfigInput = {}) {
  const live = await openLive({ agents: { enabled: 'no' }, ...input })
  onTestFinished(() => live.close())
  for (const folder of ['main', 'family', 'work']) {
    await live.host.addGroup({
      folder,
      jid: `web:${folder}`,
      name: folder,
      main: folder === 'main',
      dialect: 'hatchway',
      requires_trigger: false,
    })
  }
  await live.start()
  await live.host.startAgents()
  const folderOf = (group: string) => join(live.layout.groups, group)
  const request = async (path: string, init: RequestInit = {}) => {
    const { host } = live
    if (!host.chats) throw new Error('there are no chats')
    return createApi(host, { chat: { chats: host.chats } }).request(path, init)
  }
  const json = async (path: string, body: unknown) => {
    const response = await request(path, { method: 'POST', body: JSON.stringify(body) })
    return { status: response.status, answer: await response.json() }
  }
  return {
    live,
    folderOf,
    request,
    json,
    write: (group: string, name: string, content: string | Buffer) =>
      writeFileSync(join(folderOf(group), name), content),
    drop(group: string, payload: object, id = `a-${++counter}`) {
      post(
        join(live.layout.ipc, group, 'messages'),
        JSON.stringify({ version: 1, id, type: 'send_message', payload }),
      )
      return id
    },
    async answer(group: string, id: string) {
      const path = join(live.layout.ipc, group, 'responses', `${id}.json`)
      await until(`${id} is answered`, () => existsSync(path))
      return JSON.parse(readFileSync(path, 'utf8'))
    },
    messages: () => live.host.store.messages({}).filter(({ kind }) => kind === 'text'),
    copies: () => readdirSync(live.layout.files),
    history: async (group: string) =>
      entriesAnswer.parse(await (await request(`/api/chats/web:${group}/messages`)).json()).entries,
    upload: async (group: string, name: string, content: string | Buffer) => {
      const response = await request(`/api/chats/web:${group}/files?name=${encodeURIComponent(name)}`, {
        method: 'POST',
        headers: { 'content-type': 'application/octet-stream' },
        body: typeof content === 'string' ? content : new Uint8Array(content),
      })
      const answer: unknown = await response.json()
      return { status: response.status, answer, id: fileAnswer.safeParse(answer).data?.id ?? '' }
    },
  }
}

test('a message with files is stored with copies of them, and people can get them', async () => {
  const { write, drop, answer, messages, history, request, folderOf, live } = await open()
  const picture = Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    Buffer.alloc(1000, 7),
  ])
  write('family', 'chart.png', picture)
  write('family', 'page.html', '<script>alert(1)</script>')
  const id = drop('family', {
    text: 'look',
    attachments: [{ path: 'chart.png', name: 'Übersicht "neu".png' }, { path: '/workspace/group/page.html' }],
  })
  expect(await answer('family', id)).toMatchObject({
    ok: true,
    result: {
      status: 'queued',
      attachments: [
        { name: 'Übersicht "neu".png', type: 'image/png', bytes: 1008 },
        { name: 'page.html', type: 'text/plain', bytes: 25 },
      ],
    },
  })
  expect(messages()).toHaveLength(1)
  // The copies are the host's own: what becomes of the files does not matter.
  rmSync(folderOf('family'), { recursive: true })
  mkdirSync(folderOf('family'))
  const [entry] = await history('family')
  const [image, page] = entry?.attachments ?? []
  expect(entry?.text).toBe('look')

  const shown = await request(`/api/files/${image?.id}`)
  expect(Buffer.from(await shown.arrayBuffer()).equals(picture)).toBe(true)
  expect(Object.fromEntries(shown.headers)).toMatchObject({
    'content-type': 'image/png',
    'content-length': '1008',
    'content-disposition': `inline; filename="_bersicht _neu_.png"; filename*=UTF-8''%C3%9Cbersicht%20%22neu%22.png`,
    'x-content-type-options': 'nosniff',
    'content-security-policy': "sandbox; default-src 'none'",
    'cache-control': 'private, max-age=3600',
  })
  expect((await request(`/api/files/${image?.id}`, { method: 'HEAD' })).status).toBe(200)
  const offered = await request(`/api/files/${page?.id}`)
  expect(await offered.text()).toBe('<script>alert(1)</script>')
  expect(Object.fromEntries(offered.headers)).toMatchObject({
    'content-type': 'application/octet-stream',
    'content-disposition': `attachment; filename="page.html"; filename*=UTF-8''page.html`,
  })
  for (const unknown of ['0'.repeat(24), '..%2F..%2Fstate', 'x', `${image?.id}.part`]) {
    expect((await request(`/api/files/${unknown}`)).status).toBe(404)
  }
  await live.host.removeGroup('family')
  expect((await request(`/api/files/${image?.id}`)).status).toBe(404)
})

test('what is asked for again is sent once, with the same answer', async () => {
  const { write, drop, answer, messages, copies, live } = await open()
  write('family', 'a.txt', 'a')
  const payload = { text: 'x', attachments: [{ path: 'a.txt' }] }
  const id = drop('family', payload, 'again')
  const first = await answer('family', id)
  rmSync(join(live.layout.ipc, 'family', 'responses', 'again.json'))
  write('family', 'a.txt', 'b')
  drop('family', payload, 'again')
  expect(await answer('family', id)).toEqual(first)
  expect(messages()).toHaveLength(1)
  expect(copies()).toHaveLength(1)
})

test('a group sends its own files, to whom it may write', async () => {
  const { write, drop, answer, messages, copies, folderOf, live } = await open()
  write('family', 'mine', 'mine')
  symlinkSync(join(folderOf('family'), 'mine'), join(folderOf('work'), 'link'))
  const code = async (group: string, payload: object) =>
    (await answer(group, drop(group, payload))).error?.code
  const to = (path: string, jid?: string) => ({ text: 'x', jid, attachments: [{ path }] })
  expect(await code('work', to('link'))).toBe('not_a_file')
  expect(await code('work', to('../family/mine'))).toBe('invalid_field')
  expect(await code('work', to(join(folderOf('family'), 'mine')))).toBe('invalid_field')
  expect(await code('work', to(join(live.layout.groups, 'work', '..', 'family', 'mine')))).toBe(
    'invalid_field',
  )
  expect(await code('work', to('mine'))).toBe('not_found')
  expect(await code('family', to('mine', 'web:work'))).toBe('forbidden')
  // All or nothing.
  expect(await code('family', { text: 'x', attachments: [{ path: 'mine' }, { path: 'nothing' }] })).toBe(
    'not_found',
  )
  expect(messages()).toEqual([])
  expect(copies()).toEqual([])
})

test('rights are looked at again when it is stored', async () => {
  const { write, live, messages, copies } = await open()
  write('main', 'a', 'a')
  const work = live.host.hostWork()?.work('send_message')
  const { log } = await import('../../base/logger.ts').then(({ createLogger }) => ({
    log: createLogger(live.config),
  }))
  const context = {
    group: { folder: 'family', jid: 'web:family', name: 'family', main: true },
    requestId: 'x',
    seq: 999,
    signal: new AbortController().signal,
    progress() {},
    log,
    timezone: 'UTC',
  }
  write('family', 'a', 'a')
  const input = { text: 'x', attachments: [{ path: 'a' }] }
  // Whatever was so when it was asked for.
  await expect(work?.call({ ...input, jid: 'web:work' }, context)).rejects.toMatchObject({
    code: 'forbidden',
  })
  // Nobody asked for it, or it was taken back.
  await expect(work?.call({ ...input, jid: 'web:family' }, context)).rejects.toMatchObject({
    code: 'cancelled',
  })
  expect(messages()).toEqual([])
  expect(copies()).toEqual([])
})

test('secrets in a text do not go to another chat, unless a person has seen it', async () => {
  const { write, drop, answer, messages, copies, live, json } = await open()
  const key = `ghp_${'wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx'}`
  write('main', 'notes.txt', `the token is ${key}\n`)
  write('main', 'plain.txt', 'nothing to see\n')
  const to = (path: string, jid: string) => ({ text: 'see', jid, attachments: [{ path }] })
  expect(await answer('main', drop('main', to('notes.txt', 'web:work')))).toMatchObject({
    ok: false,
    error: { code: 'denied', message: expect.stringContaining('"notes.txt" holds what looks like a secret') },
  })
  expect(messages()).toEqual([])
  expect(copies()).toEqual([])
  expect(await answer('main', drop('main', to('plain.txt', 'web:work')))).toMatchObject({ ok: true })
  expect(await answer('main', drop('main', to('notes.txt', 'web:main')))).toMatchObject({ ok: true })

  live.host.store.transaction(transaction =>
    transaction.addTaint('main', 'session', { corrupted: true, secret: true }, 'a test', Date.now()),
  )
  const asked = async (path: string) => {
    const id = drop('main', to(path, 'web:work'))
    await until('a person is asked', () => live.host.store.approvals.open().length === 1)
    const [approval] = live.host.store.approvals.open()
    const allow = async () =>
      (await json(`/api/chats/web:main/approvals/${approval?.seq}`, { decision: 'allow' })).status
    return { id, approval, allow }
  }
  const shown = await asked('notes.txt')
  expect(shown.approval?.why).toContain('looks like a secret')
  expect(shown.approval?.why).toContain('the file "notes.txt"')
  expect(shown.approval?.action).toMatchObject({ always: false })
  expect(await shown.allow()).toBe(200)
  expect(await answer('main', shown.id)).toMatchObject({ ok: true })
  expect(messages()).toHaveLength(3)
})

test('a file that somebody approved is sent as it was then, or not at all', async () => {
  const { write, drop, answer, messages, copies, live, json } = await open()
  live.host.store.transaction(transaction =>
    transaction.addTaint('main', 'session', { corrupted: true, secret: true }, 'a test', Date.now()),
  )
  const asked = async () => {
    const attachments = [{ path: 'report.txt', name: 'Report' }]
    const id = drop('main', { text: 'see', jid: 'web:work', attachments })
    await until('a person is asked', () => live.host.store.approvals.open().length === 1)
    const [approval] = live.host.store.approvals.open()
    const decide = async (decision: string) =>
      (await json(`/api/chats/web:main/approvals/${approval?.seq}`, { decision })).status
    return { id, approval, decide }
  }
  write('main', 'report.txt', 'all is well\n')
  const swapped = await asked()
  expect(swapped.approval?.action.payload.fields).toEqual(
    expect.arrayContaining([
      { name: 'attachments[0].path', text: '"report.txt"' },
      { name: 'attachments[0].name', text: '"Report"' },
      { name: 'attachments[0].bytes', text: '12' },
      {
        name: 'attachments[0].sha256',
        text: `"${createHash('sha256').update('all is well\n').digest('hex')}"`,
      },
    ]),
  )
  write('main', 'report.txt', 'all is lost\n')
  expect(await swapped.decide('allow')).toBe(200)
  expect(await answer('main', swapped.id)).toMatchObject({ ok: false, error: { code: 'conflict' } })
  expect(messages()).toEqual([])
  expect(copies()).toEqual([])
  // "Always" is for this content, too.
  write('main', 'report.txt', 'all is well\n')
  const kept = await asked()
  expect(await kept.decide('always')).toBe(200)
  expect(await answer('main', kept.id)).toMatchObject({ ok: true })
  expect(messages()).toHaveLength(1)
  write('main', 'report.txt', 'all is lost\n')
  expect((await asked()).approval).toMatchObject({ status: 'open' })
  // A file that is not there is nothing to ask about.
  expect(
    await answer('main', drop('main', { text: 'x', jid: 'web:work', attachments: [{ path: 'none' }] })),
  ).toMatchObject({ error: { code: 'not_found' } })
})

test('a large file is refused, and of one group only so much is kept', async () => {
  const { write, drop, answer, history, request, copies } = await open({
    limits: { attachmentBytes: 1000 },
    keep: { fileBytes: 2500 },
  })
  write('family', 'large', Buffer.alloc(1001, 'x'))
  write('family', 'fits', Buffer.alloc(1000, 'x'))
  expect(
    await answer('family', drop('family', { text: 'x', attachments: [{ path: 'large' }] })),
  ).toMatchObject({
    error: { code: 'too_large' },
  })
  for (const text of ['one', 'two', 'three']) {
    expect(await answer('family', drop('family', { text, attachments: [{ path: 'fits' }] }))).toMatchObject({
      ok: true,
    })
    await until('it is delivered', async () => (await history('family')).at(-1)?.status === 'sent')
  }
  const entries = await history('family')
  expect(entries.map(({ attachments }) => attachments?.[0]?.gone ?? false)).toEqual([true, false, false])
  expect(copies()).toHaveLength(2)
  expect((await request(`/api/files/${entries[0]?.attachments?.[0]?.id}`)).status).toBe(404)
  // More at once than is ever kept.
  const all = { text: 'x', attachments: [{ path: 'fits' }, { path: 'fits' }, { path: 'fits' }] }
  expect(await answer('family', drop('family', all))).toMatchObject({ error: { code: 'quota_exceeded' } })
})

test('what was left over is removed when the host starts', async () => {
  const { live, write, drop, answer, copies, upload } = await open()
  write('family', 'a', 'a')
  await answer('family', drop('family', { text: 'x', attachments: [{ path: 'a' }] }))
  const { id } = await upload('family', 'b', 'b')
  const [kept = ''] = copies().filter(name => name !== id)
  writeFileSync(join(live.layout.files, 'f'.repeat(24)), 'nobody’s')
  writeFileSync(join(live.layout.files, `${'e'.repeat(24)}.part`), 'half')
  await live.reopen()
  await live.start()
  expect(copies().sort()).toEqual([kept, id].sort())
  await until('it is delivered', () => live.host.store.messages({ status: 'sent' }).length === 1)
  live.host.store.prune({ commands: 1, messages: 0, runs: 1, tasks: 1, usageDays: 1 })
  await live.reopen()
  await live.start()
  expect(copies()).toEqual([id])
})

test('what a person sends lies in the group’s folder, and the agent is told where', async () => {
  const { upload, json, live, folderOf, history } = await open()
  const { status, answer, id } = await upload('family', '../Plan für\nmorgen.txt', 'do it')
  expect(status).toBe(201)
  expect(answer).toMatchObject({ name: 'Plan für_morgen.txt', type: 'text/plain', bytes: 5 })
  const posted = await json('/api/chats/web:family/messages', {
    text: 'read this',
    id: 'p1',
    attachments: [id],
  })
  expect(posted).toMatchObject({ status: 201, answer: { key: 'in:1', status: 'waiting' } })
  const [row] = live.host.store.agents.incoming({ group: 'family' })
  const name = `${id}-Plan_für_morgen.txt`
  expect(row?.attachments).toEqual([
    {
      id,
      name: 'Plan für_morgen.txt',
      type: 'text/plain',
      bytes: 5,
      path: `/workspace/group/attachments/${name}`,
    },
  ])
  const path = join(folderOf('family'), 'attachments', name)
  expect(readFileSync(path, 'utf8')).toBe('do it')
  const { uid, gid, mode } = statSync(path)
  const isRoot = process.getuid?.() === 0
  expect({ uid, gid, mode: mode & 0o777 }).toEqual({
    uid: isRoot ? 1000 : process.getuid?.(),
    gid: isRoot ? 1000 : process.getgid?.(),
    mode: 0o600,
  })
  const [entry] = await history('family')
  expect(entry?.attachments).toEqual([{ id, name: 'Plan für_morgen.txt', type: 'text/plain', bytes: 5 }])

  // Sent again under the same id, it is not said again, nor laid there again.
  rmSync(path)
  expect(
    await json('/api/chats/web:family/messages', { text: 'read this', id: 'p1', attachments: [id] }),
  ).toMatchObject({ status: 200, answer: { key: null } })
  expect(existsSync(path)).toBe(false)
  // A file alone is something to say, nothing is not.
  const alone = await json('/api/chats/web:family/messages', { text: '', attachments: [id] })
  expect(alone.status).toBe(201)
  expect((await json('/api/chats/web:family/messages', { text: '' })).status).toBe(400)
  // Another chat's is not there.
  const elsewhere = await json('/api/chats/web:work/messages', { text: 'x', attachments: [id] })
  expect(elsewhere).toMatchObject({ status: 404 })
  expect(live.host.store.agents.incoming({ group: 'work' })).toEqual([])
})

test('whoever was asked for a file answers with one', async () => {
  const { upload, json, live, answer } = await open()
  const payload = { questions: [{ question: 'Which file?' }] }
  post(
    join(live.layout.ipc, 'family', 'tasks'),
    JSON.stringify({ version: 1, id: 'q-1', type: 'ask_user', payload }),
  )
  await until('it is asked', () => live.host.store.questions.open('web:family').length === 1)
  const { id } = await upload('family', 'this.txt', 'x')
  const said = await json('/api/chats/web:family/messages', { text: 'this one', attachments: [id] })
  expect(said.answer).toMatchObject({ status: 'used' })
  expect(await answer('family', 'q-1')).toMatchObject({
    ok: true,
    result: {
      answers: [
        {
          answer: `this one\n\nAttached file: /workspace/group/attachments/${id}-this.txt (text/plain, 1 bytes)`,
        },
      ],
    },
  })
})

test('an agent cannot lead what people send to elsewhere', async () => {
  const { upload, json, folderOf, live } = await open()
  const outside = join(live.data, 'outside')
  mkdirSync(outside)
  writeFileSync(join(outside, 'precious'), 'precious')
  const { id } = await upload('family', 'a.txt', 'from a person')
  const post = () => json('/api/chats/web:family/messages', { text: 'x', attachments: [id] })
  const attachments = join(folderOf('family'), 'attachments')

  symlinkSync(outside, attachments)
  expect(await post()).toMatchObject({ status: 409, answer: { error: { code: 'wrong_state' } } })
  rmSync(attachments)
  mkdirSync(attachments)
  symlinkSync(join(outside, 'precious'), join(attachments, `${id}-a.txt`))
  expect((await post()).status).toBe(201)
  expect(readFileSync(join(outside, 'precious'), 'utf8')).toBe('precious')
  expect(readFileSync(join(attachments, `${id}-a.txt`), 'utf8')).toBe('from a person')
  expect(readdirSync(outside)).toEqual(['precious'])
})

test('an upload that is too large is cut off, whatever it announced', async () => {
  const { upload, request, copies } = await open({ limits: { attachmentBytes: 1000 } })
  expect(await upload('family', 'x', Buffer.alloc(1001))).toMatchObject({
    status: 413,
    answer: { error: { code: 'too_large', message: 'A file may have 1000 bytes.' } },
  })
  let pulled = 0
  const endless = new ReadableStream<Uint8Array>({
    pull(controller) {
      pulled++
      controller.enqueue(new Uint8Array(600))
    },
  })
  const response = await request('/api/chats/web:family/files?name=endless', {
    method: 'POST',
    body: endless,
    duplex: 'half',
  })
  expect(response.status).toBe(413)
  expect(pulled).toBeLessThan(10)
  const broken = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(new Uint8Array(10))
      controller.error(new Error('the browser is gone'))
    },
  })
  const cut = await request('/api/chats/web:family/files?name=broken', {
    method: 'POST',
    body: broken,
    duplex: 'half',
  })
  expect(cut.status).toBe(503)
  expect(copies()).toEqual([])
  expect(await upload('nobody', 'x', 'x')).toMatchObject({ status: 404 })
})
