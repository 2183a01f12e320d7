import type { AddressInfo } from 'node:net'
import { Provider } from 'oidc-provider'
import { expect, onTestFinished, test } from 'vitest'
import { type Answer, cookieIn, openDaemon, send, visitorWith } from '../testing.ts'

/** What our configuration and the provider have to agree on is only known once both listen. */
async function openBoth(
  who: { email: string; verified?: boolean; groups?: string[] },
  oidc: { claim?: string; roles: Partial<Record<'admin' | 'approver' | 'viewer', string[]>> },
) {
  const clientSecret = 'a secret that both of them know'
  process.env.HATCHWAY_TEST_OIDC_SECRET = clientSecret
  const redirects: string[] = []
  const provider = await openProvider(who, clientSecret, redirects)
  const opened = await openDaemon({
    web: {
      oidc: {
        issuer: provider.issuer,
        clientId: 'hatchway',
        clientSecretVariable: 'HATCHWAY_TEST_OIDC_SECRET',
        scope: 'openid email groups',
        ...oidc,
      },
    },
  })
  redirects.push(`http://127.0.0.1:${opened.port}/api/oidc/callback`)
  return { ...opened, provider }
}

/** A real provider, certified as such, that lets in whoever asks as the one person it knows. */
async function openProvider(
  { email, verified = true, groups = [] }: { email: string; verified?: boolean; groups?: string[] },
  clientSecret: string,
  redirects: string[],
) {
  const { createServer } = await import('node:http')
  const server = createServer()
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const quiet = console.warn
  const asked: URLSearchParams[] = []
  let handle: ReturnType<Provider['callback']> | undefined
  server.on('request', (request, response) => {
    const url = new URL(request.url ?? '/', issuer)
    if (url.pathname === '/auth') asked.push(url.searchParams)
    console.warn = () => {}
    // Where it listens is known before where it may send people to.
    handle ??= new Provider(issuer, {
      clients: [
        {
          client_id: 'hatchway',
          client_secret: clientSecret,
          token_endpoint_auth_method: 'client_secret_post',
          redirect_uris: redirects,
        },
      ],
      claims: { openid: ['sub'], email: ['email', 'email_verified'], groups: ['groups'] },
      cookies: { keys: ['k'] },
      findAccount: async (_, id) => ({
        accountId: id,
        claims: async () => ({ sub: id, email, email_verified: verified, groups }),
      }),
      pkce: { required: () => true },
      ttl: { AccessToken: 600, Grant: 600, IdToken: 600, Interaction: 600, Session: 600 },
    }).callback()
    console.warn = quiet
    handle(request, response)
  })
  return { issuer, asked }
}

/** Follows where it is sent with all cookies, and signs in at the provider as its own pages would. */
async function walk(opened: { port: number; provider: { issuer: string } }, begin: string) {
  const providerPort = Number(new URL(opened.provider.issuer).port)
  const jars = new Map<number, Map<string, string>>()
  let url = new URL(begin, `http://127.0.0.1:${opened.port}`)
  let answer: Answer | undefined
  for (let steps = 0; steps < 20; steps++) {
    const port = Number(url.port)
    const jar = jars.get(port) ?? new Map<string, string>()
    jars.set(port, jar)
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
    const isPrompt = port === providerPort && url.pathname.startsWith('/interaction/')
    const prompt = isPrompt ? await send({ port }, url.pathname, { headers: { cookie } }) : undefined
    const isLogin = prompt?.text.includes('name="login"')
    answer = isPrompt
      ? await send({ port }, url.pathname, {
          method: 'POST',
          headers: { cookie, 'content-type': 'application/x-www-form-urlencoded' },
          body: isLogin ? 'prompt=login&login=person-1&password=x' : 'prompt=consent',
        })
      : await send({ port }, `${url.pathname}${url.search}`, { headers: { cookie } })
    for (const set of [answer.headers['set-cookie'] ?? []].flat()) {
      const [pair = ''] = set.split(';')
      jar.set(pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1))
    }
    const { location } = answer.headers
    if (typeof location !== 'string') break
    url = new URL(location, url)
    if (Number(url.port) === opened.port && url.searchParams.has('code') && begin.includes('stop')) break
  }
  return { answer, url, jars }
}

test('whoever the provider knows, and who has a role here, is let in by it', async () => {
  const opened = await openBoth({ email: 'ann@example.org' }, { roles: { approver: ['ann@example.org'] } })
  const page = await send({ port: opened.port }, '/')
  expect(page.text).toContain('href="/api/oidc/login"')
  expect(page.text).not.toContain('sign-in.js')
  const { answer } = await walk(opened, '/api/oidc/login')
  expect(answer?.status).toBe(200)
  const cookie = cookieIn({ headers: answer?.headers ?? {} })
  const visitor = await visitorWith({ port: opened.port }, cookie)
  expect((await visitor.get('/api/me')).json).toMatchObject({ name: 'ann@example.org', role: 'approver' })
  expect((await visitor.get('/api/sessions')).json).toMatchObject([{ way: 'oidc', role: 'approver' }])
  expect((await visitor.change('POST', '/api/host/checkup')).status).toBe(403)
  const [asked] = opened.provider.asked
  expect(asked?.get('response_type')).toBe('code')
  expect(asked?.get('code_challenge_method')).toBe('S256')
  expect(asked?.get('state')).toMatch(/.{20}/)
  expect(asked?.get('nonce')).toMatch(/.{20}/)
})

test('a list of groups gives the highest role', async () => {
  const opened = await openBoth(
    { email: 'ann@example.org', groups: ['dev', 'ops'] },
    { claim: 'groups', roles: { admin: ['ops'], viewer: ['*'] } },
  )
  const { answer } = await walk(opened, '/api/oidc/login')
  const visitor = await visitorWith({ port: opened.port }, cookieIn({ headers: answer?.headers ?? {} }))
  expect((await visitor.get('/api/me')).json).toMatchObject({ role: 'admin' })
})

test('who has no role here, or whose address nobody has verified, is told so and not let in', async () => {
  for (const [who, roles] of [
    [{ email: 'eve@example.org' }, { admin: ['ann@example.org'] }],
    [{ email: 'ann@example.org', verified: false }, { admin: ['ann@example.org'] }],
  ] as const) {
    const opened = await openBoth(who, { roles: { admin: [...roles.admin] } })
    const { answer } = await walk(opened, '/api/oidc/login')
    expect(answer?.status).toBe(401)
    expect(answer?.text).toContain('nobody has given you a role here')
    expect(
      (
        await send({ port: opened.port }, '/api/me', {
          headers: { cookie: cookieIn({ headers: answer?.headers ?? {} }) },
        })
      ).status,
    ).toBe(401)
    expect(opened.host.store.webSessions.list(0)).toEqual([])
  }
})

test('an answer of the provider counts once, in the browser that asked for it', async () => {
  const opened = await openBoth({ email: 'ann@example.org' }, { roles: { admin: ['*'] } })
  const { url, jars } = await walk(opened, '/api/oidc/login?stop')
  expect(url.searchParams.get('code')).toBeTruthy()
  const callback = (headers: Record<string, string>, search = url.search) =>
    send({ port: opened.port }, `/api/oidc/callback${search}`, { headers })
  const own = [...(jars.get(opened.port) ?? [])].map(([name, value]) => `${name}=${value}`).join('; ')
  // Somebody else's browser, sent there to be signed in as another.
  expect((await callback({})).status).toBe(401)
  const foreign = await send({ port: opened.port }, '/api/oidc/login')
  expect((await callback({ cookie: cookieIn(foreign) })).status).toBe(401)
  expect((await callback({ cookie: own })).status).toBe(200)
  expect((await callback({ cookie: own })).status).toBe(401)
  const again = await walk(opened, '/api/oidc/login?stop')
  const cookie = [...(again.jars.get(opened.port) ?? [])]
    .map(([name, value]) => `${name}=${value}`)
    .join('; ')
  const forged = new URLSearchParams(again.url.search)
  forged.set('state', 'x'.repeat(43))
  expect((await callback({ cookie }, `?${forged}`)).status).toBe(401)
  expect(opened.host.store.webSessions.list(0)).toHaveLength(1)
})

test('a provider that does not answer is named, and nobody is let in', async () => {
  const opened = await openDaemon({
    web: { oidc: { issuer: 'http://127.0.0.1:9', clientId: 'hatchway', roles: { admin: ['*'] } } },
  })
  const answer = await send({ port: opened.port }, '/api/oidc/login')
  expect(answer.status).toBe(501)
  expect(answer.text).toContain('cannot be asked')
  expect((await send({ port: opened.port }, '/api/login')).json).toEqual({
    password: false,
    oidc: '/api/oidc/login',
  })
})
