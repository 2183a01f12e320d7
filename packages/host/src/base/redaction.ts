/**
 * Takes out of a text what looks like a key, and every value of the environment whose variable is named like one. It is
 * the last look before the log, and a light one: what matters is never written to a log in the first place.
 */
const mark = '[redacted]'

/** Whose values are secret, by how people name them. */
const secretName = /(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|AUTH)$/i
/** Shorter ones are words, and would be taken out of ordinary sentences. */
const shortest = 8

/** Every pattern is bounded, so that no line makes it slow. What a group holds stays. */
const patterns: readonly RegExp[] = [
  /-----BEGIN (?:[A-Z]{1,20} ){0,3}PRIVATE KEY-----(?:(?!-----BEGIN )[\s\S]){0,8192}?(?:-----END (?:[A-Z]{1,20} ){0,3}PRIVATE KEY-----|(?="|-----BEGIN |$))/g,
  /\bsk-[A-Za-z0-9_-]{16,300}/g,
  /\b(?:gh[opsru]_[A-Za-z0-9]{20,255}|github_pat_[A-Za-z0-9_]{20,255}|glpat-[A-Za-z0-9_-]{16,64})/g,
  /\bxox[abceprs]-[A-Za-z0-9-]{10,255}/g,
  /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g,
  /\bAIza[A-Za-z0-9_-]{30,45}/g,
  /\bnpm_[A-Za-z0-9]{30,60}/g,
  /\b\d{8,12}:AA[A-Za-z0-9_-]{30,40}/g,
  // From the end of its first part, which is no secret: its beginning may stand a thousand times in a row.
  /\.(?<=\beyJ[A-Za-z0-9_-]{8,2000}\.)[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{8,1000}/g,
  /\bscrypt\$\d{1,2}\$\d{1,2}\$\d{1,2}\$[A-Za-z0-9_-]{16,64}\$[A-Za-z0-9_-]{32,128}/g,
  /(\b(?:Bearer|Basic|token) )[A-Za-z0-9+/_.~-]{12,4000}={0,2}/gi,
  /([?&](?:token|key|api_key|access_token|secret|password|signature|code)=)[^&\s"'\\]{6,4000}/gi,
  /(\b[a-z][a-z0-9+.-]{1,20}:\/\/[^\s:/@"'\\]{1,256}:)[^\s/@"'\\]{1,256}(?=@)/gi,
  /((?:x-api-key|api[_-]?key|password|passwd|secret|authorization)\\?["']?\s{0,3}[:=]\s{0,3}\\?["']?)[^\s"'\\,;}]{6,4000}/gi,
]

export function createRedaction(environment: NodeJS.ProcessEnv): (line: string) => string {
  const values = Object.entries(environment)
    .filter(([name, value]) => secretName.test(name) && (value?.trim().length ?? 0) >= shortest)
    .flatMap(([, value]) => {
      const text = (value ?? '').trim()
      // As it stands in a line of JSON.
      return [...new Set([text, JSON.stringify(text).slice(1, -1)])]
    })
    // A long one may hold a short one.
    .sort((a, b) => b.length - a.length)
  return line => {
    let text = line
    for (const value of values) if (text.includes(value)) text = text.replaceAll(value, mark)
    for (const pattern of patterns) {
      text = text.replace(pattern, (_, kept) => (typeof kept === 'string' ? kept + mark : mark))
    }
    return text
  }
}
