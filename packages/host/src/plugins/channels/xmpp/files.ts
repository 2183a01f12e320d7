import { lookup as resolve } from 'node:dns'
import { get as getPlain, type IncomingMessage } from 'node:http'
import { get as getSecure } from 'node:https'
import { BlockList, isIP, type LookupFunction } from 'node:net'
import { DeliveryError } from '../../../chat/channels/types.ts'
import { type Session, StanzaRefusal } from './session.ts'
import { ns } from './stanzas.ts'

/** Files are put on a web server and named by their address (XEP-0363, XEP-0066). */
export interface Files {
  /** where the file can be had; the reason why it cannot be sent */
  upload(name: string, type: string, content: Buffer): Promise<{ url: string } | { refused: string }>
  download(url: string): AsyncIterable<Uint8Array>
  /** who takes files on this server; undefined: nobody does */
  service(): Promise<string | undefined>
}

/** The file cannot be had; asking again would not change it. */
export class DownloadFailure extends Error {
  override name = 'DownloadFailure'
}

const transferMs = 300_000
/** what others have us fetch: everybody's messages wait meanwhile, as they are noted in their order */
const downloadMs = 20_000
/** headers that a slot may ask for, and no others: https://xmpp.org/extensions/xep-0363.html#request */
const slotHeaders: ReadonlySet<string> = new Set(['authorization', 'cookie', 'expires'])

/** Addresses that only this machine or its network can reach: nobody in a chat may have us look there. */
const inside = new BlockList()
for (const [network, bits] of [
  ...([
    ['0.0.0.0', 8],
    ['10.0.0.0', 8],
    ['100.64.0.0', 10],
    ['127.0.0.0', 8],
    ['169.254.0.0', 16],
  ] as const),
  ...([
    ['172.16.0.0', 12],
    ['192.0.0.0', 24],
    ['192.168.0.0', 16],
    ['198.18.0.0', 15],
    ['224.0.0.0', 3],
  ] as const),
])
  inside.addSubnet(network, bits, 'ipv4')
for (const [network, bits] of [
  ['::', 96],
  ['64:ff9b::', 96],
  ['fc00::', 7],
  ['fe80::', 10],
  ['ff00::', 8],
] as const)
  inside.addSubnet(network, bits, 'ipv6')
const isInside = (address: string) => inside.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')

/** Looked at when the connection is made: a name could stand for another address a moment later. */
const outsideOnly: LookupFunction = (host, options, answer) =>
  resolve(host, { ...options, all: true }, (error, addresses) => {
    const [first] = addresses ?? []
    if (error || !first) return answer(error ?? new Error(`${host} is not known`), '', 0)
    if (addresses.some(one => isInside(one.address)))
      return answer(new DownloadFailure('its address is inside a private network'), '', 0)
    if (options.all) answer(null, addresses)
    else answer(null, first.address, first.family)
  })

export function createFiles(session: Session, signal: AbortSignal): Files {
  const { xml } = session
  let found: Promise<string | undefined> | undefined

  const discover = async () => {
    const items = await session.ask('get', session.domain, xml('query', { xmlns: ns.items }))
    const addresses = items.getChild('query', ns.items)?.getChildren('item') ?? []
    for (const address of [session.domain, ...addresses.flatMap(({ attrs }) => attrs.jid ?? [])]) {
      const info = await unlessRefused(session.ask('get', address, xml('query', { xmlns: ns.info })))
      const features = info?.getChild('query', ns.info)?.getChildren('feature') ?? []
      if (features.some(({ attrs }) => attrs.var === ns.upload)) return address
    }
    return undefined
  }
  const service = () => {
    found ??= discover().catch(error => {
      found = undefined
      throw error
    })
    return found
  }
  const slotFor = async (name: string, type: string, bytes: number) => {
    const to = await service()
    if (to === undefined) return undefined
    const request = { xmlns: ns.upload, filename: name, size: String(bytes), 'content-type': type }
    const slot = (await session.ask('get', to, xml('request', request))).getChild('slot', ns.upload)
    const put = slot?.getChild('put')
    return {
      put: put?.attrs.url ?? '',
      get: slot?.getChild('get')?.attrs.url ?? '',
      headers: (put?.getChildren('header') ?? [])
        .map(one => [one.attrs.name ?? '', one.text().replace(/[\r\n]/g, '')] as [string, string])
        .filter(([header]) => slotHeaders.has(header.toLowerCase())),
    }
  }
  const isFit = (url: string) => url.startsWith('https:') || (session.isLocal && url.startsWith('http:'))

  /** What the server of the account keeps itself may be fetched wherever that is. */
  const isOwn = async (url: URL) => {
    const slot = await unlessRefused(slotFor('test.txt', 'text/plain', 1))
    return slot !== undefined && URL.canParse(slot.get) && new URL(slot.get).origin === url.origin
  }

  return {
    service,
    async upload(name, type, content) {
      let slot: Awaited<ReturnType<typeof slotFor>>
      try {
        slot = await slotFor(name, type, content.length)
      } catch (error) {
        if (!(error instanceof StanzaRefusal) || error.isTemporary) throw error
        return { refused: error.message }
      }
      if (!slot) return { refused: 'this server takes no files' }
      if (!isFit(slot.put)) return { refused: 'this server takes files without encryption only' }
      const response = await fetch(slot.put, {
        method: 'PUT',
        body: new Uint8Array(content),
        headers: [...slot.headers, ['content-type', type]],
        redirect: 'error',
        signal: AbortSignal.any([signal, AbortSignal.timeout(transferMs)]),
      })
      await response.body?.cancel()
      if (!response.ok) throw new DeliveryError(`The server did not take the file: ${response.status}.`)
      return { url: slot.get }
    },
    async *download(given) {
      if (!URL.canParse(given)) throw new DownloadFailure('it has no address')
      const url = new URL(given)
      const isFromUs = isFit(url.href) && (await isOwn(url))
      if (!isFromUs && url.protocol !== 'https:') throw new DownloadFailure('its address is not https')
      const host = url.hostname.replace(/^\[|\]$/g, '')
      if (!isFromUs && isIP(host) && isInside(host))
        throw new DownloadFailure('its address is inside a private network')
      try {
        yield* await fetchFrom(url, isFromUs ? undefined : outsideOnly, signal)
      } catch (error) {
        throw error instanceof DownloadFailure ? error : new DownloadFailure(reasonOf(error))
      }
    },
  }
}

const unlessRefused = async <T>(answer: Promise<T>): Promise<T | undefined> => {
  try {
    return await answer
  } catch (error) {
    if (error instanceof StanzaRefusal) return undefined
    throw error
  }
}

const reasonOf = (error: unknown) => (error instanceof Error ? error.message : String(error))

/** Redirections are not followed: they could lead anywhere. */
async function fetchFrom(
  url: URL,
  lookup: LookupFunction | undefined,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const get = url.protocol === 'https:' ? getSecure : getPlain
  const until = AbortSignal.any([signal, AbortSignal.timeout(downloadMs)])
  get(url, { signal: until, agent: false, ...(lookup && { lookup }) }, resolve).on('error', reject)
  const response = await promise
  if (response.statusCode === 200) return response
  response.destroy()
  throw new DownloadFailure(`the server answered ${response.statusCode}`)
}
