import { isSecretField } from './forms.ts'

/**
 * A first glance, quick enough for every message: whether there is anything in it that could be a key, a token or a
 * password in an address. Ordinary words are not; whatever could be is searched properly, which takes a moment.
 */
export function mayHoldSecrets(payload: unknown): boolean {
  const texts: string[] = []
  const values: string[] = []
  if (!collect(payload, texts, values, { left: 1000 })) return true
  // A token in pieces is one when the pieces are put together.
  if (values.length > 1) texts.push(values.join(''))
  let length = 0
  for (const text of texts) {
    length += text.length
    if (length > longest || named.test(text) || text.split(/\s+/).some(isSuspicious)) return true
  }
  return false
}

const longest = 65_536

/** A private key, or something that is called a secret. */
const named =
  /PRIVATE KEY|(?:pass(?:word|wort|wd|phrase)|secret|token|api[_-]?key|contraseña|mot de passe)["']? ?[:=]/i

/** A long word that is no ordinary one, or a name and password in an address. */
const isSuspicious = (word: string): boolean =>
  (word.length >= 16 && /\d|_|[a-z][A-Z]|[A-Z]{4}/.test(word)) || (word.includes('//') && word.includes('@'))

/** The address of a chat is where it goes, and not what. */
const addresses = new Set(['jid'])

/** false: it cannot be told, or there is one for certain */
function collect(value: unknown, texts: string[], values: string[], budget: { left: number }): boolean {
  if (budget.left-- <= 0) return false
  if (typeof value === 'string') {
    texts.push(value)
    values.push(value)
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, inner] of Object.entries(value)) {
      if (addresses.has(key)) continue
      if (!Array.isArray(value)) {
        texts.push(typeof inner === 'string' ? `${key}: ${inner}` : key)
        if (typeof inner === 'string' && isSecretField(key, inner)) return false
      }
      if (!collect(inner, texts, values, budget)) return false
    }
  }
  return true
}
