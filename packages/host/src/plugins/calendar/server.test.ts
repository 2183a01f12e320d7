import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { findProgram } from '../../base/programs.ts'
import { ServiceRefusal } from '../../services/define.ts'
import { createDavFetch } from './dav-fetch.ts'
import { openServer } from './server.ts'
import { calendarsSchema } from './settings.ts'

/** Servers that are broken, full, far away or up to something. What good ones do is tried with a real one. */
async function serve(listener: RequestListener, secure?: { key: Buffer; cert: Buffer }): Promise<string> {
  const server = secure ? createSecureServer(secure, listener) : createServer(listener)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return `${secure ? 'https' : 'http'}://127.0.0.1:${port}/`
}

const password = 'not to be told'

function open(url: string, signal = new AbortController().signal) {
  const { home } = calendarsSchema.parse({ home: { url, username: 'anna', passwordVariable: 'X' } })
  if (!home) throw new Error('there is no account')
  return openServer({ name: 'home', account: home, password, signal, homes: new Map() })
}

const refusalOf = async (work: Promise<unknown>): Promise<string> => {
  const error = await work.then(
    () => new Error('it was not refused'),
    (reason: unknown) => reason,
  )
  if (!(error instanceof ServiceRefusal)) throw error
  expect(error.message).not.toContain(password)
  expect(error.message).not.toContain('from the server')
  return `${error.code}: ${error.message}`
}

const status = (code: number) => (_request: IncomingMessage, response: ServerResponse) => {
  response.writeHead(code, { 'content-type': 'text/html' }).end('<p>words from the server</p>')
}

const xml = (response: ServerResponse, body: string) =>
  response
    .writeHead(207, { 'content-type': 'application/xml' })
    .end(
      `<?xml version="1.0"?><multistatus xmlns="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav">${body}</multistatus>`,
    )

const answer = (href: string, prop: string) =>
  `<response><href>${href}</href><propstat><prop>${prop}</prop><status>HTTP/1.1 200 OK</status></propstat></response>`

/** The least that makes a server: one calendar, with these objects in every answer. */
const calendarServer =
  (objects = ''): RequestListener =>
  (request, response) => {
    const path = request.url ?? ''
    if (request.method === 'REPORT') return xml(response, objects)
    if (path === '/home/')
      return xml(
        response,
        answer('/home/work/', '<displayname>Work</displayname><resourcetype><C:calendar/></resourcetype>'),
      )
    const principal = '<current-user-principal><href>/me/</href></current-user-principal>'
    const home = '<C:calendar-home-set><href>/home/</href></C:calendar-home-set>'
    return xml(response, answer(path, principal + home))
  }

test.each([
  [401, /^service_failed: .* refuses the user name or the password/],
  [403, /^forbidden: /],
  [404, /^not_found: /],
  [429, /^service_failed: .* busy/],
  [500, /^service_failed: .* failed \(500\)/],
  [503, /^service_failed: .* busy/],
  [507, /^quota_exceeded: /],
  [418, /^service_failed: .* \(418\)/],
])('a server that answers %i', async (code, expected) => {
  expect(await refusalOf(open(await serve(status(code))).calendars())).toMatch(expected)
})

test('a wrong password is tried once, so that nobody is locked out', async () => {
  let count = 0
  const url = await serve((request, response) => {
    count++
    status(401)(request, response)
  })
  await refusalOf(open(url).calendars())
  expect(count).toBe(1)
})

test('when something is written: full, changed, taken, not allowed', async () => {
  const write = async (code: number) => {
    const url = await serve(status(code))
    const calendar = {
      account: 'home',
      title: 'x',
      segment: 'x',
      url,
      description: undefined,
      isReadonly: false,
    }
    const server = open(url)
    return [
      await server.create(calendar, 'a.ics', '').catch(error => refusalOf(Promise.reject(error))),
      await refusalOf(server.replace(`${url}a.ics`, '"1"', '')),
      await refusalOf(server.remove(`${url}a.ics`, '"1"')),
    ].map(result => (typeof result === 'string' ? result.split(':')[0] : result))
  }
  expect(await write(412)).toEqual([false, 'conflict', 'conflict'])
  expect(await write(507)).toEqual(['quota_exceeded', 'quota_exceeded', 'quota_exceeded'])
  expect(await write(403)).toEqual(['forbidden', 'forbidden', 'forbidden'])
  expect(await write(404)).toEqual(['not_found', 'not_found', 'not_found'])
  expect(await write(413)).toEqual(['service_failed', 'service_failed', 'service_failed'])
})

test('whoever writes and hears nothing of it is told that it may have been done', async () => {
  const cut: RequestListener = request => void request.socket.destroy()
  for (const listener of [cut, status(502)]) {
    const url = await serve(listener)
    expect(await refusalOf(open(url).remove(`${url}a.ics`, '"1"'))).toMatch(
      /^service_failed: .* It may have been done/,
    )
  }
})

test('what is no CalDAV server is said to be none', async () => {
  const page: RequestListener = (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end('<html>words from the server</html>')
  }
  const broken: RequestListener = (_request, response) => {
    response.writeHead(207, { 'content-type': 'text/xml' }).end('<multistatus><words from the server')
  }
  for (const listener of [page, broken])
    expect(await refusalOf(open(await serve(listener)).calendars())).toMatch(
      /^service_failed: .* is not understood/,
    )
})

test('an address that leads nowhere, a name that nobody has', async () => {
  const gone = createServer()
  await new Promise<void>(resolve => gone.listen(0, '127.0.0.1', resolve))
  const { port } = gone.address() as AddressInfo
  await new Promise(resolve => gone.close(resolve))
  const nowhere = [`http://127.0.0.1:${port}/`, 'http://nowhere.invalid/']
  for (const url of nowhere) {
    expect(await refusalOf(open(url).calendars())).toMatch(
      /^service_failed: .* cannot be reached \(E[A-Z_]+\)/,
    )
  }
})

const openssl = findProgram('openssl')
const withCertificate = openssl || process.env.CI === 'true' ? test : test.skip
withCertificate('a certificate that nobody vouches for is not trusted', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'hatchway-certificate-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  execFileSync(
    openssl ?? 'openssl',
    [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'],
      ...['-subj', '/CN=localhost', '-days', '2', '-keyout', key, '-out', cert],
    ],
    { stdio: 'ignore' },
  )
  const url = await serve(calendarServer(), { key: readFileSync(key), cert: readFileSync(cert) })
  expect(await refusalOf(open(url).calendars())).toMatch(
    /^service_failed: .* certificate that cannot be trusted \([A-Z_]+\)/,
  )
})

test('nobody the server points to is given the password', async () => {
  const seen: string[] = []
  const elsewhere = await serve((request, response) => {
    seen.push(request.url ?? '')
    response.end()
  })
  const redirects = await serve((_request, response) => {
    response.writeHead(302, { location: `${elsewhere}secret` }).end()
  })
  expect(await refusalOf(open(redirects).calendars())).toMatch(/points to another one/)
  const points = await serve((request, response) => {
    const principal = `<current-user-principal><href>${elsewhere}me/</href></current-user-principal>`
    xml(response, answer(request.url ?? '', principal))
  })
  expect(await refusalOf(open(points).calendars())).toMatch(/points to another one/)
  expect(seen).toEqual([])
})

test('a server that sends in circles is left', async () => {
  const url = await serve((request, response) => {
    response.writeHead(301, { location: `${request.url}x` }).end()
  })
  expect(await refusalOf(open(url).calendars())).toMatch(/from one address to the next/)
})

test('a redirect within the server is followed, with the same question', async () => {
  const asked: string[] = []
  const url = await serve((request, response) => {
    asked.push(`${request.method} ${request.url}`)
    if (request.url === '/') response.writeHead(301, { location: '/dav/' }).end()
    else calendarServer()(request, response)
  })
  expect(await open(url).calendars()).toMatchObject([{ title: 'Work' }])
  expect(asked.slice(0, 2)).toEqual(['PROPFIND /', 'PROPFIND /dav/'])
})

test('an answer without end is cut off', async () => {
  const url = await serve((_request, response) => {
    response.writeHead(207, { 'content-type': 'text/xml' })
    const chunk = Buffer.alloc(65_536, 'x')
    const more = () => {
      while (!response.destroyed && response.write(chunk)) {}
    }
    response.on('drain', more)
    more()
  })
  expect(await refusalOf(open(url).calendars())).toMatch(/^answer_too_large: /)
})

test('a server that is too slow is told from one that somebody no longer waits for', async () => {
  const url = await serve(() => {})
  const { signal } = new AbortController()
  const impatient = createDavFetch({ account: 'home', url, username: 'a', password, signal, timeoutMs: 50 })
  expect(await refusalOf(impatient(url))).toMatch(/^service_failed: .* did not answer in time/)
  const abort = new AbortController()
  const asked = open(url, abort.signal).calendars()
  const expected = expect(asked).rejects.toThrow('taken back')
  abort.abort(new Error('taken back'))
  await expected
})

test('objects that are said to be in a calendar and are not are left out', async () => {
  const data = '<getetag>"1"</getetag><C:calendar-data>BEGIN:VCALENDAR</C:calendar-data>'
  const url = await serve(
    calendarServer(
      [
        '/home/work/a.ics',
        '/home/private/b.ics',
        'http://elsewhere.example/home/work/c.ics',
        '/home/work/',
        '/home/work/%2e%2e%2fd.ics',
      ]
        .map(href => answer(href, data))
        .join(''),
    ),
  )
  const server = open(url)
  const [calendar] = await server.calendars()
  if (!calendar) throw new Error('there is no calendar')
  const objects = await server.objects(calendar, { from: 0, to: 1 })
  expect(objects).toEqual([{ name: 'a.ics', etag: '"1"', text: 'BEGIN:VCALENDAR' }])
})

test('names of calendars fit into a line, whatever they look like', async () => {
  const calendar = (path: string, name: string) =>
    answer(`/home/${path}/`, `<displayname>${name}</displayname><resourcetype><C:calendar/></resourcetype>`)
  const url = await serve((request, response) => {
    if (request.url !== '/home/') return calendarServer()(request, response)
    const names = ['2026', 'true', '', ' two\n  lines&#x202e; ', '<![CDATA[a < b]]>', 'x'.repeat(5000)]
    return xml(response, names.map((name, index) => calendar(`c${index}`, name)).join(''))
  })
  const titles = (await open(url).calendars()).map(({ title }) => title)
  expect(titles).toEqual(['2026', 'true', 'c2', 'two lines', 'a < b', 'x'.repeat(200)])
})
