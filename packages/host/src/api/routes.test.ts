import { join } from 'node:path'
import { post } from '@hatchway/spool'
import { Ajv2020 } from 'ajv/dist/2020.js'
import pino from 'pino'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { until } from '../../../testing/src/until.ts'
import { roles } from '../config/web.ts'
import { createDeployTable } from '../plugins/deploy/table.ts'
import { builtInRoutes } from '../plugins/routes.ts'
import type { Store } from '../store/types.ts'
import { type Description, routesOf } from './route.ts'
import { publishedWith } from './routes.ts'
import { type Answer, begin, byPassword, folder, openDaemon, people, send, type Visitor } from './testing.ts'
import { createWebApp } from './web-app.ts'
import { openWebToken } from './web-token.ts'

/**
 * Every route there is, from the list itself: who may use it, that nobody can be made to, and that what it answers is
 * what the document says. A new route without an example here fails.
 */
const all = publishedWith(builtInRoutes).flatMap(({ prefix, routes }) =>
  routes.map(route => ({
    route,
    path: `${prefix}${route.path}`,
    name: `${route.method} ${prefix}${route.path}`,
  })),
)
const changes = all.filter(({ route }) => route.method !== 'get')

/** what others than an admin may change, and what only an admin may see */
const forEverybody = new Set(['post /api/login', 'post /api/logout'])
const forApprovers = new Set([
  'post /api/chats/:jid/messages',
  'post /api/chats/:jid/questions/:id',
  'post /api/chats/:jid/approvals/:id',
  'post /api/chats/:jid/files',
  'post /api/host/approvals/:id',
  'post /api/host/runs/:id/stop',
])
const onlyForAdmins = new Set(['get /api/host/backup'])

test('looking is for viewers, deciding and writing for approvers, every other change for admins', () => {
  for (const { route, name } of all) {
    if (route.role === 'anyone') continue
    const expected = onlyForAdmins.has(name)
      ? 'admin'
      : route.method === 'get' || forEverybody.has(name)
        ? 'viewer'
        : forApprovers.has(name)
          ? 'approver'
          : 'admin'
    expect([name, route.role]).toEqual([name, expected])
  }
  const open = all.filter(({ route }) => route.role === 'anyone').map(({ name }) => name)
  expect(open.toSorted()).toEqual([
    'get /api/login',
    'get /api/oidc/callback',
    'get /api/oidc/login',
    'get /healthz',
    'get /metrics',
    'get /readyz',
    'post /api/login',
  ])
})

interface Example {
  /** with its parameters filled in */
  path: string
  body?: unknown
  /** what an admin gets; left out: the route's own */
  status?: number
}

const inChat = (rest: string) => `/api/chats/local%3Amain/${rest}`
const examples = (known: Record<string, unknown>): Record<string, Example> => ({
  'get /api/me': { path: '/api/me' },
  'get /api/login': { path: '/api/login' },
  'post /api/login': { path: '/api/login', body: { name: 'ada', password: 'wrong' }, status: 401 },
  'get /api/oidc/login': { path: '/api/oidc/login', status: 501 },
  'get /api/oidc/callback': { path: '/api/oidc/callback?code=1&state=2', status: 501 },
  'get /api/sessions': { path: '/api/sessions' },
  'delete /api/sessions/:id': { path: '/api/sessions/nobody', status: 404 },
  'get /api/status': { path: '/api/status' },
  'get /api/chats': { path: '/api/chats' },
  'get /api/chats/:jid/messages': { path: inChat('messages?limit=5') },
  'post /api/chats/:jid/messages': { path: inChat('messages'), body: { text: '<b>hi</b> \u001b[31m' } },
  'get /api/questions': { path: '/api/questions' },
  'post /api/chats/:jid/questions/:id': { path: inChat('questions/7'), body: { text: 'yes' }, status: 404 },
  'get /api/chats/:jid/approvals/:id': { path: inChat('approvals/7') },
  'post /api/chats/:jid/approvals/:id': {
    path: inChat('approvals/7'),
    body: { decision: 'allow' },
    status: 409,
  },
  'post /api/chats/:jid/files': { path: inChat('files?name=a.txt'), body: 'hello' },
  'get /api/files/:id': { path: `/api/files/${known.file}` },
  'get /api/events': { path: '/api/events' },
  'get /api/openapi.json': { path: '/api/openapi.json' },
  'get /api/host/status': { path: '/api/host/status' },
  'get /api/host/overview': { path: '/api/host/overview' },
  'get /api/host/settings': { path: '/api/host/settings' },
  'get /api/host/feed': { path: '/api/host/feed' },
  'get /api/host/commands': { path: '/api/host/commands?ok=0&limit=10' },
  'get /api/host/commands/:seq': { path: `/api/host/commands/${known.seq}` },
  'get /api/host/events': { path: '/api/host/events' },
  'get /api/host/groups': { path: '/api/host/groups' },
  'post /api/host/groups': {
    path: '/api/host/groups',
    body: { folder: 'new', jid: 'local:new', name: '<img src=x onerror=alert(1)>' },
  },
  'post /api/host/groups/:folder/reset': { path: '/api/host/groups/main/reset', body: { message: 'begin' } },
  'post /api/host/groups/:folder/wipe': { path: '/api/host/groups/main/wipe', status: 501 },
  'post /api/host/groups/:folder/finish': { path: '/api/host/groups/main/finish', status: 409 },
  'post /api/host/periodic-agents': {
    path: '/api/host/periodic-agents',
    body: { name: 'Daily', schedule: '0 9 * * *', prompt: 'look' },
  },
  'get /api/host/tasks': { path: '/api/host/tasks?all=1' },
  'post /api/host/tasks': {
    path: '/api/host/tasks',
    body: { group: 'main', prompt: 'x', schedule_type: 'interval', schedule_value: '60000' },
  },
  'get /api/host/tasks/upcoming': { path: '/api/host/tasks/upcoming?days=2' },
  'patch /api/host/tasks/:id': { path: '/api/host/tasks/t1', body: { prompt: 'another' } },
  'post /api/host/tasks/:id/pause': { path: '/api/host/tasks/t1/pause' },
  'post /api/host/tasks/:id/resume': { path: '/api/host/tasks/t1/resume' },
  'get /api/host/tasks/:id/history': { path: '/api/host/tasks/j1/history' },
  'post /api/host/tasks/:id/run': { path: '/api/host/tasks/t1/run', status: 501 },
  'post /api/host/tasks/:id/cancel': { path: '/api/host/tasks/t1/cancel' },
  'get /api/host/jobs': { path: '/api/host/jobs?all=1' },
  'post /api/host/jobs': {
    path: '/api/host/jobs',
    body: { name: 'j', command: 'true', schedule_type: 'interval', schedule_value: '60000' },
    status: 501,
  },
  'get /api/host/jobs/:id/runs': { path: '/api/host/jobs/j1/runs' },
  'get /api/host/job-runs/:id': { path: '/api/host/job-runs/o1' },
  'get /api/host/messages': { path: '/api/host/messages?last=5' },
  'get /api/host/errors': { path: '/api/host/errors' },
  'get /api/host/errors/:id': { path: `/api/host/errors/${known.refused}?content=1` },
  'post /api/host/errors/:id/replay': { path: `/api/host/errors/${known.refused}/replay` },
  'get /api/host/runs': { path: '/api/host/runs' },
  'get /api/host/runs/:id': { path: '/api/host/runs/run-1' },
  'post /api/host/runs/:id/stop': { path: '/api/host/runs/run-1/stop', status: 409 },
  'get /api/host/usage': { path: '/api/host/usage' },
  'get /api/host/usage/limits': { path: '/api/host/usage/limits' },
  'post /api/host/usage/raise': { path: '/api/host/usage/raise', body: { factor: 2 }, status: 501 },
  'post /api/host/models/try': { path: '/api/host/models/try' },
  'post /api/host/models/find': { path: '/api/host/models/find' },
  'post /api/host/models/choose': {
    path: '/api/host/models/choose',
    body: { provider: 'compatible', name: 'any' },
    status: 400,
  },
  'delete /api/host/models/chosen': { path: '/api/host/models/chosen' },
  'get /api/host/services': { path: '/api/host/services' },
  'get /api/host/requests': { path: '/api/host/requests' },
  'get /api/host/approvals': { path: '/api/host/approvals?all=1' },
  'get /api/host/approvals/:id': { path: '/api/host/approvals/7' },
  'post /api/host/approvals/:id': {
    path: '/api/host/approvals/7',
    body: { decision: 'deny', words: 'no' },
    status: 409,
  },
  'get /api/host/pairings': { path: '/api/host/pairings' },
  'post /api/host/pairings/:which/approve': {
    path: '/api/host/pairings/nobody/approve',
    body: { folder: 'nobody' },
    status: 404,
  },
  'post /api/host/pairings/:which/deny': { path: '/api/host/pairings/nobody/deny', status: 404 },
  'delete /api/host/pairings/:which': { path: '/api/host/pairings/nobody', status: 404 },
  'get /api/host/channels': { path: '/api/host/channels' },
  'post /api/host/channels': {
    path: '/api/host/channels',
    body: { kind: 'nothing', settings: {} },
    status: 404,
  },
  'post /api/host/channels/:name/test': { path: '/api/host/channels/nothing/test', status: 404 },
  'delete /api/host/channels/:name': { path: '/api/host/channels/nothing' },
  'get /api/host/mcp': { path: '/api/host/mcp' },
  'post /api/host/mcp/try': { path: '/api/host/mcp/try', body: { name: 'odd', settings: {} }, status: 403 },
  'post /api/host/mcp': {
    path: '/api/host/mcp',
    body: { name: 'odd', settings: {}, internet: false, private: false },
    status: 403,
  },
  'post /api/host/mcp/:name/test': { path: '/api/host/mcp/nothing/test', status: 404 },
  'delete /api/host/mcp/:name': { path: '/api/host/mcp/nothing' },
  'get /api/host/approval-rules': { path: '/api/host/approval-rules' },
  'delete /api/host/approval-rules/:id': { path: '/api/host/approval-rules/1' },
  'get /api/host/taints': { path: '/api/host/taints' },
  'delete /api/host/taints/:group/:context': { path: '/api/host/taints/main/session' },
  'get /api/host/audit': { path: '/api/host/audit' },
  'get /api/host/audit/head': { path: '/api/host/audit/head' },
  'get /api/host/audit/verify': { path: '/api/host/audit/verify' },
  'get /api/host/audit/:seq': { path: `/api/host/audit/${known.audit}` },
  'get /api/host/worktrees': { path: '/api/host/worktrees' },
  'post /api/host/worktrees/:folder/sync': { path: '/api/host/worktrees/main/sync', status: 404 },
  'get /api/host/deploys': { path: '/api/host/deploys' },
  'get /api/host/deploys/:id': { path: '/api/host/deploys/1' },
  'post /api/host/deploys': { path: '/api/host/deploys', status: 501 },
  'post /api/host/checkup': { path: '/api/host/checkup' },
  'get /api/host/backup': { path: '/api/host/backup', status: 403 },
  'delete /api/host/groups/:folder': { path: '/api/host/groups/new' },
  'get /healthz': { path: '/healthz' },
  'get /readyz': { path: '/readyz' },
  'get /metrics': { path: '/metrics' },
  'post /api/logout': { path: '/api/logout' },
})

const sent = { version: 1, type: 'send_message', payload: { text: '<script>alert(1)</script> \u001b[2J' } }

/** A daemon at which something has happened, and a browser of each role. */
async function openHouse() {
  const opened = await openDaemon({ web: { users: await people(), metrics: 'yes' } })
  const { host, data } = opened
  await host.addGroup({
    folder: 'main',
    jid: 'local:main',
    name: '<b>Main</b>',
    main: true,
    dialect: 'hatchway',
  })
  const tasks = join(data, 'ipc', 'main', 'tasks')
  post(tasks, JSON.stringify({ ...sent, id: 'a' }))
  post(tasks, JSON.stringify({ ...sent, id: 'b', type: 'nonsense' }))
  const schedule = { prompt: 'x', schedule_type: 'cron', schedule_value: '0 9 * * *', task_id: 't1' }
  post(tasks, JSON.stringify({ ...sent, id: 'c', type: 'schedule_task', payload: schedule }))
  await until('all of it is handled', () => host.status().handled === 3)
  await until('it is answered', () => host.quarantine.list().length === 1)
  const audit = host.store.audit.append({
    at: Date.now(),
    group: 'main',
    actor: 'agent',
    action: 'send_message',
    summary: 'say something',
    outcome: 'allowed',
    requestId: 'a',
  })
  await happened(host.store)
  const visitors = {
    viewer: await byPassword(opened, 'vera'),
    approver: await byPassword(opened, 'abel'),
    admin: await byPassword(opened, 'ada'),
  }
  const headers = { 'content-type': 'application/octet-stream' }
  const file = await visitors.approver.change('POST', inChat('files?name=a.txt'), 'hello', headers)
  const known = {
    audit,
    seq: host.store.commands({ ok: true, limit: 1 })[0]?.seq,
    refused: host.quarantine.list()[0]?.id,
    file: file.json.id,
  }
  return { ...opened, visitors, examples: examples(known) }
}

/** What agents, tasks and people have left behind. */
async function happened(store: Store): Promise<void> {
  const at = Date.now()
  store.agents.insertRun({
    id: 'run-1',
    group: 'main',
    kind: 'chat',
    taskId: null,
    occurrenceId: null,
    sandbox: 'process',
    image: null,
    driver: 'concierge',
    sessionId: null,
    status: 'done',
    startedAt: at,
    endedAt: at,
    result: '<i>done</i>',
    error: null,
  })
  store.agents.addSteps([{ runId: 'run-1', at, kind: 'input', name: null, text: 'hello' }])
  store.agents.addUsage({
    group: 'main',
    day: '2026-01-31',
    model: 'm',
    requests: 1,
    inputTokens: 2,
    outputTokens: 3,
    cachedTokens: 1,
  })
  const { sql } = store.pluginTables({ name: 'deploy', tables: ['deploys'] })
  createDeployTable({
    sql,
    transaction: work => store.transaction(kernel => work(kernel, () => {})),
  }).add({
    request: null,
    group: null,
    isAnswered: false,
    from: 'a',
    to: 'b',
    branch: 'main',
    rebuild: false,
    resumePrompt: null,
    sessionId: null,
    createdAt: at,
  })
  const [task] = store.tasks({})
  if (!task) throw new Error('there is no task')
  const job = { name: 'j', command: 'true', cwd: '/', user: null, timeout_seconds: 60 }
  store.transaction(transaction => {
    transaction.insertTask({ ...task, id: 'j1', job })
    transaction.addTaint('main', 'session', { corrupted: true, secret: false }, 'fetch', at)
    transaction.insertRule({
      group: 'main',
      name: 'n',
      scope: 'exact',
      digest: 'd',
      summary: 's',
      madeBy: 'ada',
      createdAt: at,
    })
    transaction.insertApproval({
      seq: 7,
      group: 'main',
      jid: 'local:main',
      messageId: 7,
      code: 'abc',
      action: {
        name: 'send',
        summary: 'send it',
        payload: { fields: [{ name: 'to', text: '<b>' }], more: 0 },
        always: false,
        standing: false,
      },
      taint: { corrupted: true, secret: true },
      why: 'because',
      status: 'denied',
      decidedBy: 'Abel',
      words: null,
      rule: null,
      createdAt: at,
      expiresAt: at + 1000,
      closedAt: at,
    })
  })
  const occurrence = { taskId: 'j1', group: 'main', dueAt: at, manual: true, runId: null, claimedAt: at }
  store.agents.insertOccurrence({
    ...occurrence,
    id: 'o1',
    status: 'done',
    startedAt: at,
    endedAt: at,
    result: 'ok',
    error: null,
  })
}

type House = Awaited<ReturnType<typeof openHouse>>

/** Asks as our own page would; of what goes on for ever, the first words. */
async function ask(
  { port }: Pick<House, 'port'>,
  route: Description,
  { path, body = {} }: Example,
  visitor: Pick<Visitor, 'headers'> = { headers: {} },
): Promise<Answer> {
  const { origin: _, ...looking } = visitor.headers
  if (route.method === 'get') {
    if (!route.isStream) return send({ port }, path, { headers: looking })
    const response = await begin({ port }, path, { headers: looking })
    let text = ''
    for await (const part of response) {
      text += part
      if (text.includes('}\n')) break
    }
    const json = response.statusCode === 200 ? undefined : JSON.parse(text)
    return { status: response.statusCode ?? 0, headers: response.headers, text, json }
  }
  return send({ port }, path, {
    method: route.method.toUpperCase(),
    headers: {
      origin: `http://127.0.0.1:${port}`,
      'content-type': route.takes ?? 'application/json',
      ...visitor.headers,
    },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
}

const isForRole = ({ status, json }: Answer) =>
  status === 403 && /has the role .* and this needs/.test(json?.error?.message)

test('there is an example of every route', () => {
  const named = Object.keys(examples({}))
  expect(named.toSorted()).toEqual(all.map(({ name }) => name).toSorted())
})

const stateOf = ({ host }: House) =>
  JSON.stringify([
    host.store.groups(),
    host.store.tasks({}),
    host.store.approvals.rules(),
    host.store.taints.all(),
    host.store.agents.incoming({}),
    host.quarantine.list(),
  ])

test.each(['nobody', ...roles] as const)(
  '%s gets of every route what its role says, and no more',
  async who => {
    const house = await openHouse()
    const before = stateOf(house)
    // In the order of the examples: what a later one needs is still there.
    for (const [name, example] of Object.entries(house.examples)) {
      const { route } = all.find(each => each.name === name) ?? {}
      if (!route) throw new Error(name)
      const answer = await ask(house, route, example, who === 'nobody' ? undefined : house.visitors[who])
      const isEnough =
        route.role === 'anyone' || (who !== 'nobody' && roles.indexOf(who) >= roles.indexOf(route.role))
      const { status, json } = answer
      if (isEnough) {
        const expected = example.status ?? route.status ?? 200
        expect([name, status, isForRole(answer)]).toEqual([name, expected, false])
      } else if (who === 'nobody') {
        expect([name, status, json?.error?.code]).toEqual([name, 401, 'forbidden'])
      } else {
        expect([name, status, isForRole(answer)]).toEqual([name, 403, true])
      }
    }
    if (who === 'nobody' || who === 'viewer') expect(stateOf(house)).toBe(before)
    if (who === 'approver') {
      const said = house.host.store.agents.incoming({})
      expect(said).toMatchObject([{ sender: 'operator', senderName: 'Abel' }])
    }
  },
)

test('a path answers 405 to every method but its own, and HEAD asks for the role that GET does', async () => {
  const house = await openHouse()
  const { port } = house
  const before = stateOf(house)
  const everyMethod = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND']
  for (const [path, known] of Map.groupBy(all, each => each.path)) {
    const [first] = known
    const example = house.examples[first?.name ?? '']
    if (!first || !example) throw new Error(path)
    const isLooked = known.some(({ route }) => route.method === 'get' && !route.isStream)
    const allowed = [...known.map(({ route }) => route.method.toUpperCase()), ...(isLooked ? ['HEAD'] : [])]
    for (const visitor of [{ headers: {} }, house.visitors.admin]) {
      const headers = { origin: `http://127.0.0.1:${house.port}`, ...visitor.headers }
      const [place = ''] = example.path.split('?')
      // Another path of the list may fit, too: /tasks/upcoming is also a /tasks/:id.
      const fits = all.filter(each => new RegExp(`^${each.path.replace(/:\w+/g, '[^/]+')}$`).test(place))
      const taken = [...allowed, ...fits.map(({ route }) => route.method.toUpperCase())]
      for (const method of everyMethod.filter(each => !taken.includes(each))) {
        const answer = await send({ port }, example.path, { method, headers })
        const given = String(answer.headers.allow).split(', ')
        expect([path, method, answer.status, given.toSorted()]).toEqual([
          path,
          method,
          405,
          allowed.toSorted(),
        ])
      }
    }
    const looking = known.find(({ route }) => route.method === 'get')
    if (!isLooked || !looking || looking.name === 'get /api/host/backup') continue
    const { path: place } = house.examples[looking.name] ?? example
    for (const visitor of [{ headers: {} }, house.visitors.viewer]) {
      const { origin: _, ...headers } = visitor.headers as Record<string, string>
      const head = await send({ port }, place, { method: 'HEAD', headers })
      const get = await send({ port }, place, { headers })
      expect([path, head.status, head.text]).toEqual([path, get.status, ''])
    }
  }
  expect(stateOf(house)).toBe(before)
})

test('the application has no route that the list does not name, but public ones of plugins and the page', async () => {
  const { host, config } = await openHouse()
  if (!host.chats) throw new Error('there are no chats')
  const app = createWebApp({
    ...{ store: host.store, config, chats: host.chats, host, log: pino({ enabled: false }) },
    ...{ directory: folder('page'), isServed: true, signal: new AbortController().signal },
    token: openWebToken(folder('token')),
  })
  const found = app.routes
    .filter(({ method }) => method !== 'ALL')
    .map(({ method, path }) => `${method} ${path}`)
  const listed = all.map(({ route, path }) => `${route.method.toUpperCase()} ${path}`)
  expect(found.toSorted()).toEqual([...listed, 'POST /webhook/:name', 'GET /*'].toSorted())
})

test('a route without a role does not compile', () => {
  const route = routesOf<unknown>('')
  const about = { summary: '', answer: z.unknown(), handle: () => 1 } as const
  // @ts-expect-error it does not say who may ask
  expect(route.delete('/x', about)).not.toHaveProperty('role')
  // @ts-expect-error nobody has this role
  expect(route.delete('/x', { ...about, role: 'somebody' })).toHaveProperty('role')
})

test('no change is made without what only our own page can send', async () => {
  const house = await openHouse()
  const { headers } = house.visitors.admin
  const foreign: [string, Record<string, string>][] = [
    ['no proof', { 'x-hatchway-csrf': '' }],
    ['a wrong proof', { 'x-hatchway-csrf': 'A'.repeat(43) }],
    [
      'another session’s proof',
      { 'x-hatchway-csrf': house.visitors.viewer.headers['x-hatchway-csrf'] ?? '' },
    ],
    ['another page', { origin: 'https://evil.example' }],
    ['another port', { origin: `http://127.0.0.1:${house.port + 1}` }],
    ['no page', { origin: 'null' }],
    ['another name', { host: 'evil.example' }],
    ['a form', { 'content-type': 'application/x-www-form-urlencoded' }],
    ['a form with files', { 'content-type': 'multipart/form-data; boundary=x' }],
    ['a form of plain text', { 'content-type': 'text/plain' }],
  ]
  for (const { route, name } of changes) {
    const example = house.examples[name] ?? { path: '' }
    for (const [what, more] of foreign) {
      if (name === 'post /api/login' && 'x-hatchway-csrf' in more) continue
      const answer = await ask(house, route, example, { headers: { ...headers, ...more } })
      expect([name, what, answer.status]).toEqual([name, what, 403])
    }
  }
  expect(house.host.store.group('new')).toBeUndefined()
})

test('what is answered is what the document says', async () => {
  const house = await openHouse()
  const { json: document } = await house.visitors.viewer.get('/api/openapi.json')
  expect(document.openapi).toBe('3.1.0')
  const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true })
  ajv.addSchema(document, 'api')
  const fits = (pointer: string[], value: unknown) => {
    const place = pointer
      .map(part => part.replaceAll('~', '~0').replaceAll('/', '~1'))
      .map(encodeURIComponent)
    const isValid = ajv.validate({ $ref: `api#/${place.join('/')}` }, value)
    return isValid ? [] : ajv.errors?.map(({ instancePath, message }) => `${instancePath} ${message}`)
  }
  expect(Object.keys(document.paths)).toHaveLength(new Set(all.map(({ path }) => path)).size)

  // In the order of the examples: what a later one needs is still there.
  for (const [name, example] of Object.entries(house.examples)) {
    const { route, path } = all.find(each => each.name === name) ?? {}
    if (!route || path === undefined) throw new Error(name)
    const answer = await ask(house, route, example, house.visitors.admin)
    const expected = example.status ?? route.status ?? 200
    expect([name, answer.status, expected === answer.status ? '' : answer.text]).toEqual([name, expected, ''])
    const operation = ['paths', path.replace(/:(\w+)/g, '{$1}'), route.method]
    if (route.body && typeof example.body === 'object') {
      const place = [...operation, 'requestBody', 'content', 'application/json', 'schema']
      expect([name, 'body', fits(place, example.body)]).toEqual([name, 'body', []])
    }
    const isDone = answer.status < 300
    const type = String(answer.headers['content-type']).split(';')[0] ?? ''
    if (!isDone && type === 'text/html') continue
    const place = [...operation, 'responses', isDone ? String(answer.status) : 'default', 'content']
    const gives = isDone ? (route.gives ?? 'application/json') : 'application/json'
    expect([name, type]).toEqual([name, gives])
    const values = route.isStream && isDone ? eventsIn(answer.text) : [answer.json ?? answer.text]
    expect(values.length).toBeGreaterThan(0)
    for (const value of values) expect([name, fits([...place, gives, 'schema'], value)]).toEqual([name, []])
  }
})

/** Of server-sent events or of lines. */
const eventsIn = (text: string): unknown[] =>
  text
    .split('\n')
    .filter(line => /^(data: )?\{/.test(line))
    .map(line => JSON.parse(line.replace(/^data: /, '')))

test('the same routes are answered on the socket, to its owner', async () => {
  const house = await openHouse()
  const where = { socketPath: house.socket }
  const document = await send(where, '/openapi.json')
  expect(document.json).toEqual((await house.visitors.viewer.get('/api/openapi.json')).json)
  for (const path of ['/status', '/overview', '/groups', '/settings', '/api/chats', '/healthz', '/metrics']) {
    expect([path, (await send(where, path)).status]).toEqual([path, 200])
  }
  const answer = await send(where, '/tasks/t1', { method: 'PATCH', body: '{"prompt":"from the terminal"}' })
  expect(answer.json).toMatchObject({ task_id: 't1', status: 'active' })
})

test('names and texts with markup and escapes come as the plain text they are', async () => {
  const house = await openHouse()
  const { get } = house.visitors.viewer
  const groups = await get('/api/host/groups')
  expect(groups.headers['content-type']).toBe('application/json')
  expect(groups.headers['x-content-type-options']).toBe('nosniff')
  expect(groups.json[0].name).toBe('<b>Main</b>')
  const messages = await get('/api/host/messages')
  expect(messages.json[0].text).toBe(sent.payload.text)
  expect(messages.text).not.toContain('\u001b')
  const command = await get(house.examples['get /api/host/commands/:seq']?.path ?? '')
  expect(command.headers['content-type']).toBe('application/json')
  expect(JSON.parse(command.json.content.text)).toMatchObject({ type: 'schedule_task' })
})
