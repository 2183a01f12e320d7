import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { createInterface } from 'node:readline'

/**
 * A stand-in for the accounts of a network, which ngIRCd does not have: it stands between the assistant and the server, and
 * adds what https://ircv3.net/specs/extensions/account-tag and https://ircv3.net/specs/extensions/extended-join add, and who
 * is signed in to WHOIS (numeric 330). `accounts` has the account of each nickname.
 */
export async function startAccounts(
  port: number,
  accounts: ReadonlyMap<string, string>,
  capability: 'account-tag' | 'extended-join',
) {
  const sockets = new Set<Socket>()
  const withAccounts = (line: string): string[] => {
    const [, nick = '', command = '', rest = ''] = /^:([^!\s]+)\S* (\S+) ?(.*)$/.exec(line) ?? []
    const account = accounts.get(nick)
    if (command === 'CAP' && / LS /.test(line)) return [`${line.trimEnd()} ${capability}`]
    if (capability === 'extended-join' && command === 'JOIN')
      return [`${line.replace(' :', ' ')} ${account ?? '*'} :somebody`]
    if (capability === 'account-tag' && command === 'PRIVMSG' && account)
      return [`@account=${account} ${line}`]
    if (command === '318') {
      const [us = '', about = ''] = rest.split(' ')
      const known = accounts.get(about)
      return [...(known ? [`:irc.test 330 ${us} ${about} ${known} :is logged in as`] : []), line]
    }
    return [line]
  }
  const server = createServer(client => {
    const upstream = connect(port, '127.0.0.1')
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {})
    }
    createInterface(client).on('line', line => {
      if (line.startsWith('CAP REQ') && line.includes(capability)) {
        client.write(`:irc.test CAP * ACK :${capability}\r\n`)
        const others = line.replace(capability, '').replace(/:\s+/, ':').trimEnd()
        if (!others.endsWith(':')) upstream.write(`${others}\r\n`)
      } else upstream.write(`${line}\r\n`)
    })
    createInterface(upstream).on('line', line => {
      for (const one of withAccounts(line)) client.write(`${one}\r\n`)
    })
    client.on('close', () => upstream.destroy())
    upstream.on('close', () => client.destroy())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      server.close()
      for (const socket of sockets) socket.destroy()
      await once(server, 'close')
    },
  }
}
