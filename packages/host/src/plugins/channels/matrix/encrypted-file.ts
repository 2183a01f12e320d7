import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import { z } from 'zod'

/** How files in encrypted rooms are encrypted: AES in counter mode, and the hash of what the server has. */
export const encryptedFileSchema = z.object({
  url: z.string(),
  key: z.object({ k: z.string() }),
  iv: z.string(),
  hashes: z.object({ sha256: z.string() }),
})
export type EncryptedFile = z.output<typeof encryptedFileSchema>

const cipher = 'aes-256-ctr'
const unpadded = (bytes: Buffer) => bytes.toString('base64').replaceAll('=', '')

export function encryptFile(content: Buffer): { encrypted: Buffer; describe(url: string): object } {
  const key = randomBytes(32)
  // The half that counts begins at zero.
  const iv = Buffer.concat([randomBytes(8), Buffer.alloc(8)])
  const encrypted = createCipheriv(cipher, key, iv).update(content)
  return {
    encrypted,
    describe: url => ({
      url,
      key: {
        kty: 'oct',
        key_ops: ['encrypt', 'decrypt'],
        alg: 'A256CTR',
        k: key.toString('base64url'),
        ext: true,
      },
      iv: unpadded(iv),
      hashes: { sha256: unpadded(createHash('sha256').update(encrypted).digest()) },
      v: 'v2',
    }),
  }
}

/** Rejects at its end where the server has given something else. */
export async function* decryptFile(
  { key, iv, hashes }: EncryptedFile,
  content: AsyncIterable<Uint8Array>,
): AsyncIterable<Uint8Array> {
  const keyBytes = Buffer.from(key.k, 'base64url')
  const ivBytes = Buffer.from(iv, 'base64')
  if (keyBytes.length !== 32 || ivBytes.length !== 16) throw new BrokenFile('its key is none')
  const decipher = createDecipheriv(cipher, keyBytes, ivBytes)
  const hash = createHash('sha256')
  for await (const chunk of content) {
    hash.update(chunk)
    yield decipher.update(chunk)
  }
  if (!hash.digest().equals(Buffer.from(hashes.sha256, 'base64')))
    throw new BrokenFile('its content is not what was sent')
}

export class BrokenFile extends Error {
  override name = 'BrokenFile'
}
