import type { Logger } from 'pino'
import { within } from '../../../base/pause.ts'
import type { Confirmation } from '../../../chat/channels/types.ts'
import { createCipher } from './cipher.ts'
import type { Baileys, BinaryNode, proto, Socket, SocketConfig } from './library.ts'
import { libraryLogger } from './quiet.ts'
import type { Session } from './session.ts'
import type { WhatsAppSettings } from './settings.ts'

/** A message as WhatsApp delivered it, and what was encrypted in it. */
export interface Said {
  node: BinaryNode
  content: proto.IMessage
}

/** Why a connection has ended, by WhatsApp's own number where it gave one. */
export interface Ending {
  code: number | undefined
  reason: string
}

export interface LinkOptions {
  library: Baileys
  session: Session
  settings: WhatsAppSettings
  log: Logger
  signal: AbortSignal
  cachedGroupMetadata?: SocketConfig['cachedGroupMetadata']
  /** resolves once it is stored; only then does WhatsApp learn that it has arrived */
  take(said: Said, socket: Socket): Promise<void>
  created?(socket: Socket): void
  opened(socket: Socket, ended: AbortSignal): void
  confirm(what: Confirmation | undefined): void
}

/** a peer that does not answer is left after this */
const closeMs = 2000
const never = new Promise<never>(() => {})

/** One connection, from its beginning to its end. */
export async function runLink(options: LinkOptions): Promise<Ending> {
  const { library, session, settings, log, signal } = options
  const ended = Promise.withResolvers<Ending>()
  const over = new AbortController()
  const end = (ending: Ending) => {
    over.abort(new Error(ending.reason))
    ended.resolve(ending)
  }
  const fail = (error: unknown) => end({ code: undefined, reason: reasonOf(error) })

  const nodes = new WeakMap<Uint8Array, BinaryNode>()
  const take = async (cipher: Uint8Array, plain: Uint8Array) => {
    const node = nodes.get(cipher)
    const content = contentOf(library, plain)
    if (node && content) await options.take({ node, content }, socket)
  }
  const socket = library.makeWASocket({
    waWebSocketUrl: settings.server,
    auth: { creds: session.state.creds, keys: keysOf(session, fail) },
    logger: libraryLogger(log),
    browser: library.Browsers.ubuntu('Chrome'),
    // The phone goes on ringing, and nobody is shown as online.
    markOnlineOnConnect: false,
    syncFullHistory: false,
    emitOwnEvents: false,
    shouldIgnoreJid: address => /@(?:broadcast|newsletter)$/.test(address),
    transactionOpts: { maxCommitRetries: 1, delayBetweenTriesMs: 100 },
    // It would pause after each message that it cannot read, and all chats with it: they are taken one by one.
    retryRequestDelayMs: 0,
    makeSignalRepository: createCipher(library, { take, fail, isOver: () => over.signal.aborted }),
    ...(options.cachedGroupMetadata && { cachedGroupMetadata: options.cachedGroupMetadata }),
  })
  guardListeners(socket, log)
  socket.ws.prependListener('CB:message', (node: BinaryNode) => {
    // It would take these by another way, in an order of their own.
    delete node.attrs.offline
    for (const part of Array.isArray(node.content) ? node.content : [])
      if (part.content instanceof Uint8Array) nodes.set(part.content, node)
  })
  socket.ev.on('creds.update', () => {
    try {
      if (!over.signal.aborted) session.saveCredentials()
    } catch (error) {
      fail(error)
    }
  })
  const showCode = codeShower(socket, options)
  socket.ev.on('connection.update', ({ qr, connection, isNewLogin, lastDisconnect }) => {
    if (qr !== undefined) showCode(qr).catch(fail)
    if (isNewLogin || connection === 'open') options.confirm(undefined)
    if (connection === 'open') options.opened(socket, over.signal)
    if (connection === 'close') end(endingOf(lastDisconnect?.error))
  })
  options.created?.(socket)
  const abort = () => end({ code: undefined, reason: 'WhatsApp is being disconnected.' })
  if (signal.aborted) abort()
  signal.addEventListener('abort', abort, { once: true })
  try {
    return await ended.promise
  } finally {
    signal.removeEventListener('abort', abort)
    options.confirm(undefined)
    await within(closeMs, closed(socket, log))
  }
}

/** Undefined: whoever sent it has broken it, and would break it again. The library refuses it. */
function contentOf({ proto, unpadRandomMax16 }: Baileys, plain: Uint8Array): proto.IMessage | undefined {
  try {
    const content = proto.Message.decode(unpadRandomMax16(plain))
    return content.deviceSentMessage?.message ?? content
  } catch (error) {
    if (error instanceof Error) return undefined
    throw error
  }
}

async function closed(socket: Socket, log: Logger): Promise<void> {
  try {
    await socket.end(undefined)
  } catch (error) {
    log.debug({ reason: reasonOf(error) }, 'a connection could not be closed properly')
  }
}

/** A QR code as it comes; or a code to type, which is asked for once. */
function codeShower(socket: Socket, { settings, confirm }: LinkOptions) {
  let isAsked = false
  return async (qr: string) => {
    if (settings.phone === undefined) return confirm({ kind: 'qr', value: qr })
    if (isAsked) return
    isAsked = true
    const code = await socket.requestPairingCode(settings.phone)
    confirm({ kind: 'code', value: code.replace(/^(.{4})(.{4})$/, '$1-$2') })
  }
}

/** What cannot be kept ends the connection, before WhatsApp is told that something has arrived. */
const keysOf = (session: Session, fail: (error: unknown) => void): SocketConfig['auth']['keys'] => ({
  ...session.state.keys,
  async set(data) {
    try {
      await session.state.keys.set(data)
    } catch (error) {
      fail(error)
      await never
    }
  },
})

/**
 * The library listens with functions whose failures nobody would see: one of them would end the daemon. And it may let a
 * message overtake another, above all what was said just now what was said in our absence: here each waits for the one
 * before it.
 */
function guardListeners({ ws }: Socket, log: Logger): void {
  let last: Promise<unknown> = Promise.resolve()
  for (const event of ws.eventNames())
    for (const listener of ws.rawListeners(event)) {
      const call = async (given: unknown[]) => {
        try {
          await Reflect.apply(listener, ws, given)
        } catch (error) {
          log.debug({ reason: reasonOf(error) }, 'the library of WhatsApp has failed')
        }
      }
      ws.off(event, listener as () => void)
      ws.on(event, (...given: unknown[]) => {
        if (event !== 'CB:message') void call(given)
        else last = last.then(() => call(given))
      })
    }
}

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

function endingOf(error: unknown): Ending {
  const code =
    error instanceof Error && 'output' in error && typeof error.output === 'object' && error.output !== null
      ? (error.output as { statusCode?: number }).statusCode
      : undefined
  return { code, reason: error === undefined ? 'the connection was closed' : reasonOf(error) }
}
