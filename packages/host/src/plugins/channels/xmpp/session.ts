import { randomUUID } from 'node:crypto'
import { resolveSrv } from 'node:dns/promises'
import { StringDecoder } from 'node:string_decoder'
import { abortable, pause } from '../../../base/pause.ts'
import { DeliveryError } from '../../../chat/channels/types.ts'
import type { Client, Element, Xml, XmppLibrary } from './library.ts'
import { bareOf, fitForXml, localOf, ns } from './stanzas.ts'

/** One connection to the server, from signing in to its end. Nothing of it is used again. */
export interface Session {
  xml: Xml
  /** our own address */
  me: string
  domain: string
  /** the server is on this machine, where encryption protects from nobody */
  isLocal: boolean
  ask(type: 'get' | 'set', to: string | undefined, child: Element): Promise<Element>
  send(stanza: Element): Promise<void>
  /** resolves once the server has the message; with what the room made of it, where `to` is one */
  deliver(message: Element, isRoom: boolean): Promise<Element | undefined>
  /** what came back of a message that a room has passed on */
  reflected(message: Element): void
  /** ends it, and with it whatever waits for it */
  fail(error: Error): void
  /** rejects when it has ended */
  ended: Promise<never>
  close(): Promise<void>
}

/** The server, or whoever a stanza was for, says no. */
export class StanzaRefusal extends Error {
  override name = 'StanzaRefusal'
  readonly condition: string
  readonly isTemporary: boolean
  constructor(error: Element | undefined) {
    const condition = error?.getChildElements().find(one => one.getNS() === ns.stanzas && !one.is('text'))
    const text = error?.getChildText('text', ns.stanzas)
    super(`The server refused it: ${condition?.name ?? 'no reason given'}${text ? ` (${text})` : ''}.`)
    this.condition = condition?.name ?? ''
    this.isTemporary = error?.attrs.type === 'wait'
  }
}

/** Nobody has said anything, for as long as anybody should need. */
export class NoAnswer extends Error {
  override name = 'NoAnswer'
}

const connectMs = 30_000
const answerMs = 30_000
const aliveMs = 60_000
const closeMs = 1000

interface Waiting {
  to: string | undefined
  resolve(stanza: Element): void
  reject(error: Error): void
}

export interface SessionOptions {
  library: XmppLibrary
  address: string
  password: string
  server: string
  /** apps of people may ask us what we can do */
  features: readonly string[]
  receive(stanza: Element): void
  signal: AbortSignal
}

export async function openSession(options: SessionOptions): Promise<Session> {
  const { library, address, signal } = options
  const xml = fitting(library.xml)
  const domain = address.slice(localOf(address).length + 1)
  const service = await serviceOf(domain, options.server)
  const isLocal = isLoopback(new URL(service).hostname)
  const client = library.client({
    service,
    domain,
    timeout: connectMs,
    credentials: (authenticate, offered, _, stream) => {
      if (!stream.isSecure() && !isLocal)
        throw new Error('The server offers no encryption (TLS), so the password was not sent to it.')
      const mechanism = ['SCRAM-SHA-1', 'PLAIN'].find(one => offered.includes(one))
      if (mechanism === undefined)
        throw new Error('The server takes passwords in no way that this channel knows (SCRAM-SHA-1, PLAIN).')
      return authenticate({ username: localOf(address), password: options.password }, mechanism)
    },
  })
  client.reconnect.stop()
  client.prependListener('element', withoutBroken)
  const over = Promise.withResolvers<never>()
  // Whoever waits for it hears of it; nobody has to.
  over.promise.catch(() => undefined)
  guard(client, over.reject)
  client.on('error', error => over.reject(explained(error)))
  client.on('disconnect', () => over.reject(new Error('The server has ended the connection.')))
  client.iqCallee.get(ns.info, 'query', () =>
    xml(
      'query',
      { xmlns: ns.info },
      xml('identity', { category: 'client', type: 'bot', name: 'Hatchway' }),
      options.features.map(one => xml('feature', { var: one })),
    ),
  )
  const close = () => closeClient(client)
  const starting = AbortSignal.any([signal, AbortSignal.timeout(connectMs)])
  try {
    await abortable(Promise.race([client.start(), over.promise]), starting)
  } catch (error) {
    over.reject(explained(error))
    await close()
    throw signal.aborted || !starting.aborted
      ? explained(error)
      : new Error(`${service} does not answer. Check the server of the account.`)
  }
  const me = bareOf(client.jid?.toString() ?? address)
  const talk = createTalk({ client, xml, me, domain, ended: over.promise, fail: over.reject })
  client.on('stanza', stanza => {
    if (!talk.takes(stanza)) options.receive(stanza)
  })
  void talk.stayAlive()
  return { ...talk, xml, me, domain, isLocal, fail: over.reject, ended: over.promise, close }
}

/** XML has no place for some letters, wherever agents or people put them; the server would end the connection. */
const fitting =
  (make: Xml): Xml =>
  (name, attributes = {}, ...children) =>
    make(
      name,
      Object.fromEntries(Object.entries(attributes).map(([key, value]) => [key, value && fitForXml(value)])),
      ...children.map(child => (typeof child === 'string' ? fitForXml(child) : child)),
    )

/** What is asked and said, and who waits for an answer to it. */
function createTalk(given: {
  client: Client
  xml: Xml
  me: string
  domain: string
  ended: Promise<never>
  fail(error: Error): void
}) {
  const { client, xml, me, domain, ended } = given
  const waiting = new Map<string, Waiting>()
  const over = new AbortController()
  ended.catch(error => over.abort(error))

  const answerTo = async (key: string, stanza: Element): Promise<Element> => {
    const { promise, resolve, reject } = Promise.withResolvers<Element>()
    waiting.set(key, { to: stanza.attrs.to, resolve, reject })
    const late = setTimeout(() => reject(new NoAnswer('The server does not answer.')), answerMs)
    try {
      over.signal.throwIfAborted()
      await client.send(stanza)
      return await abortable(promise, over.signal)
    } finally {
      clearTimeout(late)
      waiting.delete(key)
    }
  }
  const ask: Session['ask'] = (type, to, child) => {
    const id = randomUUID()
    return answerTo(`iq ${id}`, xml('iq', { type, id, ...(to !== undefined && { to }) }, child))
  }
  /** Only whom it was sent to can answer it. */
  const isAnswer = ({ to }: Waiting, from: string | undefined) =>
    to === undefined
      ? from === undefined || from === domain || bareOf(from) === me
      : bareOf(from ?? me) === bareOf(to)

  return {
    ask,
    send: (stanza: Element) => client.send(stanza),
    async deliver(message: Element, isRoom: boolean) {
      const answer = answerTo(`message ${message.attrs.id}`, message)
      if (isRoom) return answer
      // A chat has no answer but a refusal. The server takes stanzas in their order: once it answers a ping, it has the message.
      await Promise.race([answer, ask('get', undefined, xml('ping', { xmlns: ns.ping })).catch(passRefusal)])
      const kept = waiting.get(`message ${message.attrs.id}`)
      kept?.resolve(message)
      await answer
      return undefined
    },
    reflected(message: Element) {
      waiting.get(`message ${message.attrs.id}`)?.resolve(message)
    },
    takes(stanza: Element): boolean {
      const { type, from, id } = stanza.attrs
      if (type !== 'error' && !(stanza.name === 'iq' && type === 'result')) return false
      const one = waiting.get(`${stanza.name} ${id}`)
      if (!one || !isAnswer(one, from)) return stanza.name !== 'presence'
      if (type === 'error') one.reject(new StanzaRefusal(stanza.getChild('error')))
      else one.resolve(stanza)
      return true
    },
    async stayAlive() {
      while (!over.signal.aborted) {
        await pause(aliveMs, over.signal)
        if (over.signal.aborted) return
        try {
          await ask('get', undefined, xml('ping', { xmlns: ns.ping }))
        } catch (error) {
          if (!(error instanceof StanzaRefusal)) given.fail(explained(error))
        }
      }
    },
  }
}

/** A server that knows no pings refuses them, which is an answer as well. */
const passRefusal = (error: unknown) => {
  if (!(error instanceof StanzaRefusal)) throw error
}

/**
 * The library counts stanzas for stream management (XEP-0198) from the wrong one on if they arrive right after it was turned
 * on, and Prosody ends such a connection. Archives and pings do the same for us. The newer way to sign in would turn it on, too.
 */
function withoutBroken(element: Element): void {
  if (!element.is('features', 'http://etherx.jabber.org/streams')) return
  element.remove('sm', 'urn:xmpp:sm:3')
  element.remove('authentication', 'urn:xmpp:sasl:2')
}

/**
 * The library decodes each packet by itself, which breaks letters at the borders, and what its parser throws would end the
 * daemon. So what arrives goes through here.
 */
function guard(client: Client, fail: (error: Error) => void): void {
  const decoder = new StringDecoder('utf8')
  client._onData = data => {
    try {
      client.parser?.write(typeof data === 'string' ? data : decoder.write(data))
    } catch (error) {
      fail(explained(error))
      destroy(client)
    }
  }
}

const destroy = ({ socket }: Client) => {
  socket?.socket?.destroy()
  socket?.destroy?.()
}

async function closeClient(client: Client): Promise<void> {
  const socket = client.socket
  // A server that is gone is not waited for.
  client.timeout = closeMs
  await client.stop()
  socket?.socket?.destroy()
  socket?.destroy?.()
}

const isLoopback = (host: string) =>
  host === 'localhost' || host === '[::1]' || /^127(\.\d{1,3}){3}$/.test(host)

/**
 * Where to connect. The certificate is checked against the domain of the address, whatever DNS says; direct TLS is checked
 * against the host, so it is used only where the operator has named that.
 */
async function serviceOf(domain: string, server: string): Promise<string> {
  if (server !== '') return server.includes('://') ? server : `xmpp://${server}`
  try {
    const [best] = (await resolveSrv(`_xmpp-client._tcp.${domain}`)).toSorted(
      (a, b) => a.priority - b.priority || b.weight - a.weight,
    )
    if (best && best.name !== '') return `xmpp://${best.name}:${best.port}`
  } catch (error) {
    // Most domains have no such entry.
    if (!(error instanceof Error && 'code' in error)) throw error
  }
  return `xmpp://${domain}`
}

function explained(error: unknown): Error {
  if (!(error instanceof Error)) return new Error(String(error))
  if (error instanceof DeliveryError || error instanceof StanzaRefusal) return error
  const condition = 'condition' in error ? String(error.condition) : ''
  const code = 'code' in error ? String(error.code) : ''
  if (error.name === 'SASLError' && condition === 'not-authorized')
    return new Error('The server does not take this address with this password. Check both.')
  if (error.name === 'SASLError') return new Error(`The server did not let us in: ${error.message}.`)
  if (condition === 'host-unknown')
    return new Error('This server has no accounts of this domain. Check the address and the server.')
  if (/CERT|ALTNAME|SELF_SIGNED|UNABLE_TO_VERIFY/.test(code))
    return new Error(`The certificate of the server cannot be trusted: ${error.message}.`)
  if (/^E[A-Z]+$/.test(code)) return new Error(`The server cannot be reached: ${error.message}.`)
  return error
}
