/**
 * Secrets that can be told by their form alone, beside the ones that secretlint knows. Whatever only looks random is left
 * out: hashes and identifiers do too. Every pattern is bounded, so that no text makes it slow.
 */
interface Form {
  kind: string
  /** its first group, if it has one, is the secret itself */
  pattern: RegExp
  /** for forms that ordinary text has, too */
  isReal?(secret: string): boolean
}

const hasDigit = (text: string) => /\d/.test(text)

/** What stands in examples and templates where the secret would be. */
const placeholder =
  /^(?:\$\{.*|\$\(.*|\$[A-Z_][A-Z0-9_]*|%[A-Z_]+%|\{\{?.*|<.*|\[.*|[*•.…x_-]{3,}|(?:your|my|the|some|an?)[_-].*|(?:null|none|undefined|true|false|yes|no|string|text|required|optional|secret|pass(?:word|wd|phrase)?|pwd|token|example|changeme|placeholder|redacted|hidden|masked|removed|unknown|empty|unset)\W*)$/i

/** A word of a sentence, a path, an address, or a piece of a program is no password; a mixture is. */
const isPassword = (text: string): boolean =>
  !placeholder.test(text) &&
  !/^[~.]{0,2}\/|:\/\/|[()]/.test(text) &&
  ((hasDigit(text) && /\p{L}/u.test(text)) || /[!@#$%^&*+~?|\\]/.test(text) || /^\d{6,}$/.test(text))

const names = [
  'pass(?:word|wd|phrase|code)',
  'pwd',
  'secret(?:[_-]?(?:access[_-]?)?(?:key|token))?',
  '(?:api|access|auth|private|signing|encryption|master)[_-]?(?:key|secret|token)',
  '(?:bearer|refresh|session|bot)[_-]?token',
  '(?<!page|next|sync|ation|csrf)[_-]token',
  'client[_-]?secret',
  'credentials?',
  'passwort|kennwort|contrase(?:ñ|n)a|mot de passe|senha|wachtwoord|hasło|пароль|密码|密碼|パスワード|비밀번호',
].join('|')

const forms: readonly Form[] = [
  { kind: 'private_key', pattern: /-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----/g },
  { kind: 'private_key', pattern: /PuTTY-User-Key-File-\d|AGE-SECRET-KEY-1[0-9A-Z]{20}/g },
  {
    kind: 'password_in_address',
    pattern: /\b[a-z][a-z0-9+.-]{1,20}:\/\/[^\s/?#:@"'<>]{0,128}:([^\s/?#@"'<>]{1,256})@[^\s]/gi,
    isReal: password => !placeholder.test(password),
  },
  { kind: 'anthropic_key', pattern: /\bsk-ant-[A-Za-z0-9_-]{20}/g },
  { kind: 'openai_key', pattern: /\bsk-(?:proj|svcacct|admin|or-v1)-[A-Za-z0-9_-]{24}/g },
  { kind: 'openai_key', pattern: /\bsk-[A-Za-z0-9]{32,128}/g, isReal: hasDigit },
  { kind: 'github_token', pattern: /\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{50})/g },
  {
    kind: 'slack_token',
    pattern: /\b(?:xox[a-z](?:\.xox[a-z])?|xapp)-[A-Za-z0-9-]{10,256}/g,
    isReal: hasDigit,
  },
  { kind: 'google_key', pattern: /\bAIza[0-9A-Za-z_-]{35}|\bya29\.[0-9A-Za-z_-]{20}|\bGOCSPX-[\w-]{20}/g },
  { kind: 'telegram_token', pattern: /\b\d{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])/g },
  {
    kind: 'discord_token',
    pattern: /\b[MNO][A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}\b/g,
  },
  {
    kind: 'json_web_token',
    // From its middle: its beginning may stand a thousand times in a row, and each would be followed to the row's end.
    pattern: /(?<=\beyJ[A-Za-z0-9_-]{10,4096})\.eyJ[A-Za-z0-9_-]{10,8192}\.[A-Za-z0-9_-]{10}/g,
  },
  {
    kind: 'authorization',
    pattern:
      /\bauthorization["'`]?\s{0,5}[:=]\s{0,5}["'`]?(?:bearer|basic|token|apikey)\s{1,5}([A-Za-z0-9+/_=.~-]{8,512})/gi,
    isReal: value => !placeholder.test(value),
  },
  {
    kind: 'password',
    pattern: new RegExp(
      `(?:${names})(?:\\\\?["'\`]|\\*\\*)?\\s{0,3}(?::=|=>|[:=：])\\s{0,3}(?:\\\\?["'\`]|\\*\\*)?([^\\s"'\`,;<>]{6,256})`,
      'giu',
    ),
    isReal: isPassword,
  },
]

const secretField =
  /^(?:.{0,64}[._-])?(?:pass(?:word|wd|phrase|code)|(?:api|secret|private|signing|master)[._-]?key|(?:client|api|app)[._-]?secret|(?:access|auth|refresh|bearer|bot|session)[._-]?token)$/i

/** In a field that is called so, ordinary words are a secret too. */
export const isSecretField = (name: string, value: string): boolean =>
  secretField.test(name) && value.length >= 4 && !placeholder.test(value)

/** Where in a text there is something of these forms; so many of each at most. */
export function* findForms(text: string, most = 16): Generator<{ kind: string; index: number }> {
  for (const { kind, pattern, isReal } of forms) {
    let found = 0
    for (const match of text.matchAll(pattern)) {
      if (isReal && !isReal(match[1] ?? match[0])) continue
      yield { kind, index: match.index }
      if (++found >= most) break
    }
  }
}
