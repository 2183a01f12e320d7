import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

/**
 * Whatever the console can do, a command can. The sources are looked through for the paths they ask for: a part that is
 * computed stands for any parameter, and for a fixed name only where the same file has that name in quotes.
 */
const root = join(import.meta.dirname, '..', '..', '..')

const card = 'about the card of an approval in a chat; `approvals` decides the same for any group'
const browserOnly = 'about browsers, which sign in; the socket is its owner’s and serves none of it'
/** Served, and no command's business. */
const without: Readonly<Record<string, string>> = {
  'get /api/me': browserOnly,
  'get /api/login': browserOnly,
  'post /api/login': browserOnly,
  'get /api/oidc/login': browserOnly,
  'get /api/oidc/callback': browserOnly,
  'post /api/logout': browserOnly,
  'get /api/sessions': browserOnly,
  'delete /api/sessions/{id}': browserOnly,
  'post /api/chats/{jid}/questions/{id}': 'in `chat` a question is answered by saying the answer',
  'get /api/chats/{jid}/approvals/{id}': card,
  'post /api/chats/{jid}/approvals/{id}': card,
  'get /api/openapi.json': 'for programs; docs/openapi.json is the same',
  'get /api/host/settings': '`config` reads the same from the files, also where no daemon could start',
  'get /api/host/status': 'part of the overview, which `status` shows',
  'get /api/host/overview': '`status` asks for it by a function of the client’s',
  'post /api/host/checkup': '`doctor` asks for it by way of the host’s own doctor',
  'get /healthz': 'for whatever watches the process',
  'get /readyz': 'for whatever watches the process',
  'get /metrics': 'for Prometheus',
}

interface Asked {
  /** undefined: the path is put together before it is asked for */
  method: string | undefined
  segments: readonly string[]
  source: string
}

const methods: Readonly<Record<string, string>> = {
  get: 'get',
  download: 'get',
  events: 'get',
  chatEvents: 'get',
  feed: 'get',
  post: 'post',
  upload: 'post',
  patch: 'patch',
  delete: 'delete',
}
const computed = '*'

function askedIn(source: string): Asked[] {
  const calls = /(?:\.(\w+)\(\s*)?(?:'(\/[a-z][^'\n]*)'|url`(\/[a-z][^`\n]*)`)/g
  return [...source.matchAll(calls)].map(([, call = '', plain, template = '']) => ({
    method: methods[call],
    segments: (plain ?? template)
      .replace(/\?.*$/, '')
      .replaceAll(/\$\{[^}]*\}/g, computed)
      .split('/'),
    source,
  }))
}

const isFor = (asked: Asked, method: string, path: string): boolean => {
  const segments = path.replace(/^\/api\/host/, '').split('/')
  return (
    (asked.method ?? method) === method &&
    asked.segments.length === segments.length &&
    segments.every((segment, i) => {
      const said = asked.segments[i] ?? ''
      if (segment.startsWith('{')) return said.startsWith(computed)
      return said === segment || (said === computed && asked.source.includes(`'${segment}'`))
    })
  )
}

const document: { paths: Record<string, Record<string, unknown>> } = JSON.parse(
  readFileSync(join(root, 'docs', 'openapi.json'), 'utf8'),
)
const routes = Object.entries(document.paths).flatMap(([path, operations]) =>
  Object.keys(operations).map(method => ({ name: `${method} ${path}`, method, path })),
)
const asked = globSync('packages/cli/src/{*,commands/*,chat/*,tail/*}.ts', { cwd: root })
  .filter(file => !/\.test\.ts$|demo|testing/.test(file))
  .flatMap(file => askedIn(readFileSync(join(root, file), 'utf8')))

test.each(routes)('$name is used by a command, or the list says why not', ({ name, method, path }) => {
  const isAsked = asked.some(one => isFor(one, method, path))
  expect({ isAsked, reason: without[name] }).toEqual(
    name in without ? { isAsked: false, reason: without[name] } : { isAsked: true, reason: undefined },
  )
})

test('every route in the list of exceptions exists', () => {
  const served = routes.map(({ name }) => name)
  expect(Object.keys(without).filter(name => !served.includes(name))).toEqual([])
})
