import { readFileSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

/**
 * A filter for OpenSMTPD, which speaks its line protocol. It stands for a program that checks senders by SPF: without a
 * DNS, a server that calls itself `mx.example.test` may send for example.test. A mail by Dovecot's submission service is of
 * somebody who has signed in. The verdict goes on top of the mail, as RFC 8601 says; headers that were there stay.
 *
 * Its first argument is the server's name, the second a file with answers to refuse the next mails with, one on each line.
 */
const [, , authserv = '', refusals = ''] = process.argv

interface Session {
  helo: string
  from: string
  hasBegun: boolean
}
const sessions = new Map<string, Session>()
/** Counts on after a restart, too. */
let accepted = Date.now()

const sessionOf = (id: string): Session => {
  const known = sessions.get(id) ?? { helo: '', from: '', hasBegun: false }
  sessions.set(id, known)
  return known
}

function nextRefusal(): string | undefined {
  const [next, ...rest] = readFileSync(refusals, 'utf8').split('\n').filter(Boolean)
  if (next !== undefined) writeFileSync(refusals, rest.join('\n'))
  return next
}

const domainOf = (address: string) => address.slice(address.lastIndexOf('@') + 1)

function verdictOn({ helo, from }: Session): string {
  if (helo === authserv) return `auth=pass smtp.auth=${from}`
  const result = helo === `mx.${domainOf(from)}` ? 'pass' : 'fail'
  return `spf=${result} (of "${from}") smtp.mailfrom=${from}`
}

const say = (line: string): void => void process.stdout.write(`${line}\n`)

function filter(phase: string, id: string, token: string, parameter: string): void {
  const session = sessionOf(id)
  if (phase === 'mail-from') {
    const refusal = nextRefusal()
    Object.assign(session, { from: parameter.replace(/^<|>.*$/g, ''), hasBegun: false })
    say(`filter-result|${id}|${token}|${refusal === undefined ? 'proceed' : `reject|${refusal}`}`)
    return
  }
  const line = (text: string) => say(`filter-dataline|${id}|${token}|${text}`)
  if (!session.hasBegun) {
    session.hasBegun = true
    line(`Authentication-Results: ${authserv}; ${verdictOn(session)}`)
    // Mail is delivered in any order; this is the one in which it was taken in.
    line(`X-Arrival: ${++accepted}`)
  }
  line(parameter)
}

for await (const line of createInterface({ input: process.stdin })) {
  const [kind = '', , , , event = '', id = '', second = '', ...rest] = line.split('|')
  if (kind === 'config' && line === 'config|ready') {
    say('register|report|smtp-in|link-identify')
    say('register|report|smtp-in|link-disconnect')
    say('register|filter|smtp-in|mail-from')
    say('register|filter|smtp-in|data-line')
    say('register|ready')
  } else if (kind === 'report' && event === 'link-identify') sessionOf(id).helo = rest.join('|')
  else if (kind === 'report' && event === 'link-disconnect') sessions.delete(id)
  else if (kind === 'filter') filter(event, id, second, rest.join('|'))
}
