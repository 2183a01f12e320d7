import type { ServerResponse } from 'node:http'

/** Answers that go on for as long as somebody reads them. */
const endless = ['text/event-stream', 'application/x-ndjson']

export const isEndless = ({ headers }: Response): boolean => {
  const type = headers.get('content-type')
  return type !== null && endless.some(each => type.startsWith(each))
}

/**
 * Sends an endless answer piece by piece. The adapter's own way waits for each piece within the waiting for the one
 * before it, so that a page that is open for an hour has the host keep a promise for everything it was ever sent.
 */
export async function sendEndless(answer: Response, to: ServerResponse): Promise<void> {
  to.writeHead(answer.status, Object.fromEntries(answer.headers))
  to.flushHeaders()
  const reader = answer.body?.getReader()
  if (!reader) return void to.end()
  // Nobody is told: whoever has left does not mind how it ends.
  to.once('close', () => void reader.cancel().catch(() => {}))
  for (let piece = await reader.read(); !piece.done && !to.destroyed; piece = await reader.read()) {
    if (!to.write(piece.value)) await hasRoom(to)
  }
  to.end()
}

const hasRoom = (to: ServerResponse): Promise<void> =>
  new Promise(resolve => {
    const goOn = () => {
      to.off('drain', goOn)
      to.off('close', goOn)
      resolve()
    }
    to.on('drain', goOn)
    to.on('close', goOn)
    if (to.destroyed) goOn()
  })
