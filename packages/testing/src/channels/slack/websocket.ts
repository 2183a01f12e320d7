import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'

/** The server's side of a WebSocket (RFC 6455), as far as a test needs it: whole text frames, pings, and closing. */
export interface ServerSocket {
  send(text: string): void
  /** says goodbye, and ends the connection */
  close(): void
  destroy(): void
}

const opcode = { text: 1, close: 8, ping: 9, pong: 10 }

export function acceptWebSocket(
  request: IncomingMessage,
  socket: Duplex,
  on: {
    message(text: string): void
    closed(): void
    /** the client said goodbye, and was answered; false: the line stays open, as some servers leave it */
    endsWhenClosed?: boolean
  },
): ServerSocket {
  const key = request.headers['sec-websocket-key'] ?? ''
  const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
  )
  const write = (code: number, payload: Buffer) => {
    if (!socket.destroyed && socket.writable)
      socket.write(Buffer.concat([headerOf(code, payload.length), payload]))
  }
  let received = Buffer.alloc(0)
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk])
    for (let frame = frameIn(received); frame; frame = frameIn(received)) {
      received = received.subarray(frame.bytes)
      if (frame.code === opcode.text) on.message(frame.payload.toString())
      if (frame.code === opcode.ping) write(opcode.pong, frame.payload)
      if (frame.code === opcode.close) {
        write(opcode.close, frame.payload)
        if (on.endsWhenClosed ?? true) socket.end()
      }
    }
  })
  socket.on('error', () => socket.destroy())
  socket.on('end', () => socket.end())
  socket.on('close', () => on.closed())
  return {
    send: text => write(opcode.text, Buffer.from(text)),
    close() {
      write(opcode.close, Buffer.from([0x03, 0xe8]))
      socket.end()
    },
    destroy: () => socket.destroy(),
  }
}

function headerOf(code: number, length: number): Buffer {
  if (length < 126) return Buffer.from([0x80 | code, length])
  const header = Buffer.alloc(length < 65_536 ? 4 : 10)
  header[0] = 0x80 | code
  header[1] = length < 65_536 ? 126 : 127
  if (length < 65_536) header.writeUInt16BE(length, 2)
  else header.writeBigUInt64BE(BigInt(length), 2)
  return header
}

/** The first frame, if all of it is there. Clients mask what they send. */
function frameIn(data: Buffer): { code: number; payload: Buffer; bytes: number } | undefined {
  if (data.length < 2) return undefined
  const short = (data[1] ?? 0) & 0x7f
  const lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0
  const start = 2 + lengthBytes + 4
  if (data.length < start) return undefined
  const length =
    lengthBytes === 0 ? short : lengthBytes === 2 ? data.readUInt16BE(2) : Number(data.readBigUInt64BE(2))
  if (data.length < start + length) return undefined
  const mask = data.subarray(start - 4, start)
  const payload = Buffer.from(data.subarray(start, start + length))
  for (let i = 0; i < payload.length; i++) payload[i] = (payload[i] ?? 0) ^ (mask[i % 4] ?? 0)
  return { code: (data[0] ?? 0) & 0x0f, payload, bytes: start + length }
}
