import { until } from '../../until.ts'
import type { Person, Platform } from '../platform.ts'
import { startAccounts } from './accounts.ts'
import { startNgircd } from './ngircd.ts'
import { createIrcPerson } from './person.ts'

/** A real ngIRCd with Ann and a stranger in a channel. `accounts`: with the stand-in for accounts before it. */
export async function openIrc(options: { accounts?: 'account-tag' | 'extended-join' } = {}) {
  const server = await startNgircd()
  const accounts = new Map([['ann', 'Ann_Account']])
  const services = options.accounts && (await startAccounts(server.port, accounts, options.accounts))
  const anns = await createIrcPerson(server.port, 'ann', ['#others'])
  const mallorys = await createIrcPerson(server.port, 'mallory', ['#others'])
  const ann: Person = { id: services ? 'ann_account' : '~ann', name: 'ann' }
  const stranger: Person = { id: '~mallory', name: 'mallory' }
  const room = 'irc:#others'
  const others: Awaited<ReturnType<typeof createIrcPerson>>[] = []
  const people = () => [anns, mallorys, ...others]
  const personOf = ({ name }: Person) => people().find(({ nickname }) => nickname === name) ?? mallorys
  let count = 0

  const platform = {
    settings: {
      ...{ server: '127.0.0.1', port: services?.port ?? server.port, tls: false, nickname: 'hatch' },
      ...{ channels: ['#others'], nicknames: services === undefined, pause: 0 },
    },
    direct: `irc:${ann.id}`,
    room,
    ann,
    stranger,
    async say(by, jid, text, more = {}) {
      // The assistant joins its channels right after it has connected.
      await until(() => anns.lines.some(line => /^:hatch\S* JOIN|353 ann .*hatch/.test(line)))
      await personOf(by).say(jid === room ? '#others' : 'hatch', more.mention ? `hatch: ${text}` : text)
      return String(++count)
    },
    async shown(jid) {
      const reader = others.find(({ nickname }) => jid === `irc:~${nickname}`) ?? anns
      return reader.spoken
        .filter(({ to }) => (jid === room) === (to === '#others'))
        .map(({ from, text }, index) => ({
          id: String(index),
          isOurs: from === 'hatch',
          text: text.replace(/\p{Cc}/gu, ''),
        }))
    },
    isDownForAll: true,
    down: server.kill,
    async up() {
      await server.start()
      await Promise.all(people().map(person => person.join()))
    },
    async another(number) {
      const person = await createIrcPerson(server.port, `person${number}`, [])
      others.push(person)
      return { person: { id: `~${person.nickname}`, name: person.nickname }, jid: `irc:~${person.nickname}` }
    },
    async close() {
      for (const person of people()) person.close()
      await services?.close()
      await server.close()
    },

    async forge(text) {
      mallorys.write(`:ann!~ann@127.0.0.1 PRIVMSG #others :hatch: ${text}`)
    },

    // What is special to IRC.
    accounts,
    anns,
    mallorys,
  } satisfies Platform & Record<string, unknown>
  return platform
}
