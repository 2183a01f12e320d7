/** What we use of @xmpp/client, which has no types of its own: written from its source in the version of the lock file. */

export interface Element {
  name: string
  attrs: Readonly<Record<string, string | undefined>>
  is(name: string, namespace?: string): boolean
  getChild(name: string, namespace?: string): Element | undefined
  getChildren(name: string, namespace?: string): Element[]
  getChildElements(): Element[]
  getChildText(name: string, namespace?: string): string | null
  getNS(): string | undefined
  remove(name: string, namespace: string): void
  text(): string
}

export type Child = Element | string | undefined | false | readonly Child[]
export type Xml = (
  name: string,
  attributes?: Record<string, string | undefined>,
  ...children: readonly Child[]
) => Element

interface Socket {
  destroy?(): void
  /** beneath one with TLS */
  socket?: { destroy(): void } | null
}

type Authenticate = (given: { username: string; password: string }, mechanism: string) => Promise<void>

export interface Client {
  jid: { toString(): string } | null
  timeout: number
  socket: Socket | null
  parser: { write(text: string): void } | null
  reconnect: { stop(): void }
  iqCallee: { get(namespace: string, name: string, answer: () => Element): void }
  isSecure(): boolean
  start(): Promise<unknown>
  stop(): Promise<unknown>
  send(element: Element): Promise<void>
  on(event: 'error', listener: (error: unknown) => void): void
  on(event: 'stanza', listener: (element: Element) => void): void
  on(event: 'disconnect', listener: () => void): void
  prependListener(event: 'element', listener: (element: Element) => void): void
  /** what came from the socket, which is bound when it is attached */
  _onData(data: Buffer | string): void
}

export interface XmppLibrary {
  xml: Xml
  client(options: {
    service: string
    domain: string
    timeout: number
    credentials(
      authenticate: Authenticate,
      mechanisms: readonly string[],
      fast: unknown,
      client: Client,
    ): Promise<void>
  }): Client
}
