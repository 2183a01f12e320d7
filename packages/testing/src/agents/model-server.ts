import { createServer, type IncomingHttpHeaders } from 'node:http'
import { onTestFinished } from 'vitest'
import { type ProviderName, providers } from '../../../host/src/config/providers.ts'

/** A model server on the usual port of a provider that nobody else on this machine has; it only knows its list. */
export async function serveModelList(
  names: readonly string[],
  asked: (headers: IncomingHttpHeaders) => void = () => {},
): Promise<ProviderName> {
  for (const provider of ['vllm', 'lmstudio', 'llamacpp', 'ollama'] as const) {
    const server = createServer(({ headers }, response) => {
      asked(headers)
      response.end(JSON.stringify({ data: names.map(id => ({ id })) }))
    })
    const isOpen = await new Promise<boolean>(done => {
      server.once('error', () => done(false))
      server.listen(Number(new URL(providers[provider].url ?? '').port), '127.0.0.1', () => done(true))
    })
    if (!isOpen) continue
    onTestFinished(() => new Promise<void>(done => void server.close(() => done())))
    return provider
  }
  throw new Error('every usual port is taken')
}
