import { randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto'

/**
 * Passwords as the configuration keeps them: `scrypt$LOG2_N$R$P$SALT$HASH`, the last two in base64url. The numbers
 * stand in it, so that those of a later version can be larger and old ones still hold.
 */
const cost = { log2n: 15, r: 8, p: 3 }
const saltBytes = 16
const hashBytes = 32
/** what one look at a password may take; more in an entry is a mistake, or meant to hurt */
const mostMemory = 256 * 1024 * 1024

const derive = (password: string, salt: Buffer, { log2n, r, p }: typeof cost) =>
  new Promise<Buffer>((resolve, reject) => {
    const options: ScryptOptions = { N: 2 ** log2n, r, p, maxmem: mostMemory }
    scrypt(password.normalize('NFKC'), salt, hashBytes, options, (error, key) =>
      error ? reject(error) : resolve(key),
    )
  })

export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(saltBytes)
  const hash = await derive(password, salt, cost)
  const { log2n, r, p } = cost
  return `scrypt$${log2n}$${r}$${p}$${salt.toString('base64url')}$${hash.toString('base64url')}`
}

/** false, too, for an entry that nobody can match. */
export async function isPassword(password: string, entry: string): Promise<boolean> {
  const [kind, log2n, r, p, salt = '', hash = ''] = entry.split('$')
  if (kind !== 'scrypt') return false
  const wanted = Buffer.from(hash, 'base64url')
  const given = await derive(password, Buffer.from(salt, 'base64url'), {
    log2n: Number(log2n),
    r: Number(r),
    p: Number(p),
  }).catch(() => undefined)
  return given !== undefined && given.length === wanted.length && timingSafeEqual(given, wanted)
}

/** For names that nobody has: looking at it takes as long as at anybody's. */
export const nobodysPassword = `scrypt$${cost.log2n}$${cost.r}$${cost.p}$${'A'.repeat(22)}$${'A'.repeat(43)}`
