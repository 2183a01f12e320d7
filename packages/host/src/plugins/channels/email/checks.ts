import { domainOf } from './addresses.ts'

/**
 * Whether a mail is from whom it says. Anybody can write anything into a mail; what counts is the verdict of the mail
 * server that took it in, which it puts at the top in an Authentication-Results header (RFC 8601). A sender can put such
 * headers into a mail as well, with our server's name: they are further down, so only the topmost one counts, and only if
 * it is our server's. One server writes several at times, each on top of the others; those below the topmost are left out,
 * as they cannot be told from forged ones.
 *
 * It is enough that one of these holds for the address in From:
 *   dmarc=pass for its domain;
 *   dkim=pass by its domain, or spf=pass for its domain, and no dmarc result that is not a pass;
 *   auth=pass for the whole address: somebody who has signed in to our own server.
 */
export type Verdict = { ok: true } | { ok: false; reason: string }

export function checkSender(
  from: string,
  headers: readonly { key: string; value: string }[],
  authserv: string,
): Verdict {
  const topmost = headers.find(({ key }) => key === 'authentication-results')
  if (!topmost)
    return refused('the mail server has added no Authentication-Results header. It has to check senders')
  const results = parseResults(topmost.value)
  if (!results) return refused('its topmost Authentication-Results header cannot be read')
  if (results.server !== authserv)
    return refused(
      `its topmost Authentication-Results header is by ${JSON.stringify(results.server.slice(0, 100))}, not by ${JSON.stringify(authserv)}. If that is your mail server's name, set it as authserv`,
    )
  return isVouchedFor(from, results.checks)
    ? { ok: true }
    : refused(`${authserv} does not vouch for ${from} (${summary(results.checks)})`)
}

const refused = (reason: string): Verdict => ({ ok: false, reason })

interface Check {
  method: string
  result: string
  /** by type and name, such as `smtp.mailfrom` */
  properties: ReadonlyMap<string, string>
}

function isVouchedFor(from: string, checks: readonly Check[]): boolean {
  const domain = domainOf(from)
  /** of each check of this kind that was passed, the first of these properties that it has */
  const passed = (method: string, ...names: readonly string[]) =>
    checks
      .filter(check => check.method === method && check.result === 'pass')
      .flatMap(({ properties }) => names.flatMap(name => properties.get(name) ?? []).slice(0, 1))
      .map(value => value.toLowerCase())
  const isOfDomain = (value: string) => domainOf(value) === domain
  // A second verdict about the same thing has been smuggled in.
  const dmarc = checks.filter(({ method }) => method === 'dmarc')
  if (dmarc.length > 1) return false
  // Not smtp.mailfrom: whoever has signed in may write there whom they like.
  if (passed('auth', 'smtp.auth').includes(from)) return true
  if (passed('dmarc', 'header.from').some(isOfDomain)) return true
  if (dmarc.some(({ result }) => result !== 'none' && result !== 'pass')) return false
  return [...passed('dkim', 'header.d', 'header.i'), ...passed('spf', 'smtp.mailfrom')].some(isOfDomain)
}

const summary = (checks: readonly Check[]): string =>
  checks.length === 0
    ? 'no check was made'
    : checks
        .slice(0, 8)
        .map(({ method, result }) => `${method}=${result}`)
        .join(', ')

/**
 * Words, quoted strings and the signs that mean something. Comments are left out, however they are nested: some servers
 * put there what the sender wrote. Undefined: a comment or a quotation does not end.
 */
function tokensOf(text: string): string[] | undefined {
  const tokens: string[] = []
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    const sign = text[at] ?? ''
    if (depth > 0) {
      if (sign === '\\') at++
      else if (sign === '(') depth++
      else if (sign === ')') depth--
    } else if (sign === '(') depth = 1
    else if (sign === ';' || sign === '=') tokens.push(sign)
    else if (!/\s/.test(sign)) {
      const word = wordAt(text, at)
      if (word === undefined) return undefined
      tokens.push(word)
      at += word.length - 1
    }
  }
  return depth === 0 ? tokens : undefined
}

const plainWord = /[^\s;=()"]+/y
const quotedWord = /"(?:[^"\\]|\\.)*"/y

/** A word with the quotations in it: `"a b"@example.org` is one. */
function wordAt(text: string, from: number): string | undefined {
  let at = from
  for (;;) {
    const form = text[at] === '"' ? quotedWord : plainWord
    form.lastIndex = at
    const [found] = form.exec(text) ?? []
    if (found === undefined) return text[at] === '"' || at === from ? undefined : text.slice(from, at)
    at += found.length
  }
}

/** Undefined: it is not of the form that RFC 8601 gives it. */
export function parseResults(value: string): { server: string; checks: Check[] } | undefined {
  const tokens = tokensOf(value)
  if (!tokens) return undefined
  const statements: string[][] = [[]]
  for (const token of tokens)
    if (token === ';') statements.push([])
    else statements.at(-1)?.push(token)
  const [[server] = [], ...rest] = statements
  if (server === undefined || server === '=') return undefined
  const checks: Check[] = []
  for (const statement of rest) {
    const [method, equals, result] = statement
    if (method === undefined || (method === 'none' && statement.length === 1)) continue
    if (equals !== '=' || result === undefined) return undefined
    checks.push({
      method: method.toLowerCase().replace(/\/.*$/, ''),
      result: result.toLowerCase(),
      properties: propertiesIn(statement.slice(3)),
    })
  }
  return { server: unquoted(server).toLowerCase(), checks }
}

function propertiesIn(words: readonly string[]): Map<string, string> {
  const properties = new Map<string, string>()
  for (const [index, word] of words.entries()) {
    const [name, value] = [words[index - 1], words[index + 1]]
    // The first one counts: what follows could be part of something that was not quoted.
    if (word !== '=' || name === undefined || value === undefined || properties.has(name.toLowerCase()))
      continue
    // One that goes on behind another "=" was not quoted, and is nobody's: `victim.org=x@evil.org` is not of victim.org.
    properties.set(name.toLowerCase(), words[index + 2] === '=' ? '' : unquoted(value))
  }
  return properties
}

const unquoted = (word: string): string =>
  /^".*"$/s.test(word) ? word.slice(1, -1).replace(/\\(.)/g, '$1') : word
