import { createHmac, timingSafeEqual } from 'node:crypto'

export const timestampHeader = 'x-hatchway-timestamp'
export const signatureHeader = 'x-hatchway-signature'

const windowSeconds = 300

/** HMAC-SHA256 over the time in seconds, a dot, and the body, byte for byte. */
export const sign = (secret: string, timestamp: string, body: string | Uint8Array): string =>
  `v1=${createHmac('sha256', secret).update(`${timestamp}.`).update(body).digest('hex')}`

/** undefined: it is genuine and fresh; otherwise why not, without a word about the secret */
export function checkSignature(options: {
  secret: string
  timestamp: string | undefined
  signature: string | undefined
  body: Uint8Array
  now: number
}): string | undefined {
  const { secret, timestamp = '', signature = '', body, now } = options
  if (!/^\d{1,12}$/.test(timestamp)) return `${timestampHeader} must be the time in seconds since 1970.`
  const expected = Buffer.from(sign(secret, timestamp, body))
  const given = Buffer.from(signature)
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
    return `${signatureHeader} does not fit the body.`
  }
  // Only after the signature: who does not have the secret learns nothing about our clock.
  if (Math.abs(Number(timestamp) - now / 1000) > windowSeconds) {
    return `${timestampHeader} is more than ${windowSeconds / 60} minutes away from the host’s clock.`
  }
  return undefined
}
