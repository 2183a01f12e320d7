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
      const person = by.id === ann.id ? anns : mallorys
      // The assistant joins its channels right after it has connected.
      await until(() => anns.lines.some(line => /^:hatch\S* JOIN|353 ann .*hatch/.test(line)))
      await person.say(jid === room ? '#others' : 'hatch', more.mention ? `hatch: ${text}` : text)
      return String(++count)
    },
    shown: async jid =>
      anns.spoken
        .filter(({ from, to }) =>
          jid === room ? to === '#others' : to !== '#others' && [from, to].includes('ann'),
        )
        .map(({ from, text }, index) => ({
          id: String(index),
          isOurs: from === 'hatch',
          text: text.replace(/\p{Cc}/gu, ''),
        })),
    down: server.kill,
    async up() {
      await server.start()
      await Promise.all([anns.join(), mallorys.join()])
    },
    async close() {
      anns.close()
      mallorys.close()
      await services?.close()
      await server.close()
    },

    // What is special to IRC.
    accounts,
    anns,
    mallorys,
  } satisfies Platform & Record<string, unknown>
  return platform
}
