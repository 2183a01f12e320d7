import type { IncomingMessage } from 'node:http'
import { brokenOff, noRoom, tooLarge } from './refusals.ts'
import type { Refusal } from './request.ts'

export const headerBytes = 32_768
/** A body in pieces may cost half as much again on the wire, and a little more at the beginning. */
const wireBytes = (bodyBytes: number) => 2 * headerBytes + 1.5 * bodyBytes

/** what is set aside for a body of unknown length */
const firstBytes = 16_384

export interface Body {
  bytes: Buffer
  /** the model that is asked for in it, as far as it says so */
  model: string
  /** it is answered, and no longer kept; may be called again */
  release(): void
}

/**
 * Reads bodies to their end. What counts is the memory that is set aside, not what has come: a sandbox may announce much
 * and send nothing, or send each byte as a piece of its own.
 */
export function createBodyReader(limits: {
  requestBytes: number
  heldBytes: number
}): (request: IncomingMessage) => Promise<Body | Refusal> {
  let heldBytes = 0

  return (request: IncomingMessage): Promise<Body | Refusal> =>
    new Promise(resolve => {
      let bytes = Buffer.alloc(0)
      let size = 0
      const release = () => {
        heldBytes -= bytes.length
        bytes = Buffer.alloc(0)
        body.bytes = bytes
      }
      const body: Body = { bytes, model: '', release }
      const stop = (refusal: Refusal) => {
        request.removeAllListeners('data')
        request.pause()
        release()
        resolve(refusal)
      }
      /** whether there is room for so many */
      const reserve = (wanted: number): boolean => {
        if (wanted > limits.requestBytes) stop(tooLarge)
        else if (heldBytes + wanted - bytes.length > limits.heldBytes) stop(noRoom)
        else {
          const larger = Buffer.allocUnsafeSlow(wanted)
          bytes.copy(larger, 0, 0, size)
          heldBytes += wanted - bytes.length
          bytes = larger
          return true
        }
        return false
      }
      const announced = request.headers['content-length']
      if (!reserve(announced === undefined ? Math.min(firstBytes, limits.requestBytes) : Number(announced)))
        return
      request.on('data', (chunk: Buffer) => {
        const end = size + chunk.length
        if (request.socket.bytesRead > wireBytes(end)) return stop(tooLarge)
        if (end > bytes.length && !reserve(Math.max(end, Math.min(2 * bytes.length, limits.requestBytes))))
          return
        chunk.copy(bytes, size)
        size = end
      })
      request.on('end', () => {
        body.bytes = bytes.subarray(0, size)
        resolve(body)
      })
      request.on('error', () => stop(brokenOff))
      request.on('close', () => {
        if (!request.complete) stop(brokenOff)
      })
    })
}
