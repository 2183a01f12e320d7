import { execFileSync } from 'node:child_process'
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { Hono } from 'hono'
import { expect, onTestFinished, test } from 'vitest'
import { startDaemon } from '../assemble/main.ts'
import { type ConfigInput, configSchema } from '../config.ts'
import { openCertificate } from './certificate.ts'
import { createHttpFor } from './http.ts'
import { cookieIn, folder, openDaemon, people, send, visitorWith } from './testing.ts'
import { checkWeb } from './web-server.ts'

function certificate(name = 'localhost') {
  const directory = folder('tls')
  const paths = { cert: join(directory, 'cert.pem'), key: join(directory, 'key.pem') }
  execFileSync(
    'openssl',
    [
      ...[
        'req',
        '-x509',
        '-newkey',
        'ec',
        '-pkeyopt',
        'ec_paramgen_curve:prime256v1',
        '-nodes',
        '-days',
        '2',
      ],
      ...['-subj', `/CN=${name}`, '-addext', `subjectAltName=DNS:${name},IP:127.0.0.1`],
      ...['-keyout', paths.key, '-out', paths.cert],
    ],
    { stdio: 'ignore' },
  )
  return paths
}

test('under TLS the console is served as it is without, and its cookie never goes without', async () => {
  const tls = certificate()
  const opened = await openDaemon({ web: { tls, users: await people() } })
  expect(opened.link).toMatch(/^https:\/\/127\.0\.0\.1:\d+\/\?token=/)
  const where = { port: opened.port, ca: readFileSync(tls.cert, 'utf8') }
  const welcome = await send(where, `/${new URL(opened.link).search}`)
  expect(welcome.status).toBe(200)
  const [cookie = ''] = [welcome.headers['set-cookie'] ?? []].flat()
  expect(cookie).toMatch(/^__Host-hatchway-\d+=/)
  expect(cookie).toMatch(/; Secure/)
  const visitor = await visitorWith(where, cookieIn(welcome))
  expect((await visitor.get('/api/me')).json).toMatchObject({ role: 'admin' })
  const body = { folder: 'main', jid: 'local:main', name: 'Main', main: true }
  expect((await visitor.change('POST', '/api/host/groups', body)).status).toBe(201)
  const plain = `http://127.0.0.1:${opened.port}`
  expect((await visitor.change('POST', '/api/logout', {}, { origin: plain })).status).toBe(403)
  // Without TLS there is nobody.
  await expect(send({ port: opened.port }, '/')).rejects.toThrow()
  expect((await visitor.get('/api/me')).status).toBe(200)
})

test('old versions of TLS are not spoken', async () => {
  const tls = certificate()
  const { port } = await openDaemon({ web: { tls } })
  const attempt = new Promise((resolve, reject) => {
    const socket = connect({
      port,
      host: '127.0.0.1',
      rejectUnauthorized: false,
      maxVersion: 'TLSv1.1',
      minVersion: 'TLSv1',
    })
    socket.once('secureConnect', () => resolve(socket.getProtocol()))
    socket.once('error', reject)
  })
  await expect(attempt).rejects.toThrow()
})

const web = (input: ConfigInput['web']) => configSchema.parse({ web: input })

test('it is not served to others without TLS or the word for it, nor without people who can sign in', async () => {
  const users = await people()
  const tls = certificate()
  const oidc = { issuer: 'https://id.example.org', clientId: 'hatchway' }
  for (const host of ['0.0.0.0', '::', '192.0.2.7', 'hatchway.example.org']) {
    await expect(checkWeb(web({ host }))).rejects.toThrow(/web\.tls\.cert.*\n.*web\.users/)
    await expect(checkWeb(web({ host, users }))).rejects.toThrow(
      /web\.tls\.cert and web\.tls\.key.* or, .*web\.insecure to yes/,
    )
    await expect(checkWeb(web({ host, tls }))).rejects.toThrow(/web\.users .*web\.oidc/)
    await expect(checkWeb(web({ host, insecure: 'yes' }))).rejects.toThrow(/web\.users/)
    for (const enough of [
      { users, tls },
      { users, insecure: 'yes' as const },
      { oidc, tls },
    ]) {
      await checkWeb(web({ host, ...enough }))
    }
  }
  for (const host of ['127.0.0.1', 'localhost', '::1', '127.8.0.1']) {
    await expect(checkWeb(web({ host }))).resolves.toBeUndefined()
  }
  for (const host of ['127.0.0.1.example.org', '1270.0.0.1', 'localhost.example.org', '::2']) {
    await expect(checkWeb(web({ host }))).rejects.toThrow(/others can reach/)
  }
})

test('what is half configured is said before anything is started', async () => {
  const tls = certificate()
  const data = folder('refused')
  const start = (input: ConfigInput['web']) =>
    startDaemon({ ...configSchema.parse({ logLevel: 'silent', web: { port: 0, ...input } }), data })
  await expect(start({ host: '0.0.0.0' })).rejects.toMatchObject({ name: 'ConfigError' })
  await expect(start({ tls: { cert: tls.cert } })).rejects.toThrow('web.tls needs both cert and key')
  await expect(start({ oidc: { issuer: 'https://id.example.org' } })).rejects.toThrow('issuer and clientId')
  const [user] = await people()
  if (!user) throw new Error('nobody')
  await expect(start({ users: [user, { ...user, name: 'VERA' }] })).rejects.toThrow('"vera" twice')
  await expect(start({ tls: { ...tls, key: join(data, 'none') } })).rejects.toThrow(/web\.tls\.key .*ENOENT/)
  await expect(start({ tls: { ...tls, key: certificate().key } })).rejects.toThrow(
    /no certificate and its key/,
  )
  writeFileSync(join(data, 'rubbish'), 'rubbish')
  await expect(start({ tls: { ...tls, cert: join(data, 'rubbish') } })).rejects.toThrow(
    /no certificate and its key/,
  )
})

test('served to others, it answers to its own name and to addresses, and to no other name', async () => {
  const opened = await openDaemon({
    web: { host: '0.0.0.0', insecure: 'yes', url: 'https://hatchway.example.org', users: await people() },
  })
  expect(opened.link).toMatch(/^https:\/\/hatchway\.example\.org\/\?token=/)
  const where = { port: opened.port }
  const status = async (host: string, origin?: string) => {
    const headers = { host, 'content-type': 'application/json', ...(origin === undefined ? {} : { origin }) }
    const sent = { method: 'POST', headers, body: '{"name":"nobody","password":"x"}' }
    return (await send(where, '/api/login', sent)).status
  }
  const outside = 'hatchway.example.org'
  expect(await status(outside, `https://${outside}`)).toBe(401)
  expect(await status(`10.0.0.1:${opened.port}`, `http://10.0.0.1:${opened.port}`)).toBe(401)
  for (const [host, origin] of [
    [outside, `http://${outside}`],
    [outside, undefined],
    [`${outside}:81`, `https://${outside}:81`],
    ['evil.example', 'http://evil.example'],
    ['10.0.0.1.evil.example', 'http://10.0.0.1.evil.example'],
  ]) {
    expect([host, await status(host ?? '', origin)]).toEqual([host, 403])
  }
  // Behind a proxy that has TLS, the cookie is for TLS only.
  const welcome = await send(where, `/${new URL(opened.link).search}`, { headers: { host: outside } })
  expect(String(welcome.headers['set-cookie'])).toMatch(/^__Host-hatchway-443=.*; Secure/)
})

test('a certificate that was renewed is used without a restart, once all of it is there', async () => {
  const tls = certificate()
  const http = createHttpFor(() => new Hono().get('/', c => c.text('here')), openCertificate(tls, 0))
  const server = createServer({ pauseOnConnect: true }, connection => http.take(connection))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    server.close()
    await http.close()
  })
  const address = server.address()
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0
  const before = readFileSync(tls.cert, 'utf8')
  expect((await send({ port, ca: before }, '/')).text).toBe('here')
  const next = certificate()
  renameSync(next.key, tls.key)
  expect((await send({ port, ca: before }, '/')).text).toBe('here')
  renameSync(next.cert, tls.cert)
  expect((await send({ port, ca: readFileSync(tls.cert, 'utf8') }, '/')).text).toBe('here')
  await expect(send({ port, ca: before }, '/')).rejects.toThrow()
})
