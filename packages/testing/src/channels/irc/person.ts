import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { until } from '../../until.ts'

interface Spoken {
  from: string
  to: string
  text: string
}

/** Somebody with an IRC app. IRC keeps nothing: what they have seen is what arrived while they were there. */
export async function createIrcPerson(port: number, nickname: string, channels: readonly string[]) {
  const spoken: Spoken[] = []
  const lines: string[] = []
  let socket: Socket | undefined
  const write = (line: string) => socket?.write(`${line}\r\n`)

  const join = async () => {
    const begun = lines.length
    const opened = connect(port, '127.0.0.1')
    socket = opened
    opened.on('error', () => {})
    createInterface(opened).on('line', line => {
      lines.push(line)
      if (line.startsWith('PING')) write(line.replace('PING', 'PONG'))
      const [, from = '', to = '', text] = /^:([^!]+)\S* PRIVMSG (\S+) :?(.*)$/.exec(line) ?? []
      if (text !== undefined) spoken.push({ from, to, text })
    })
    await once(opened, 'connect')
    write(`NICK ${nickname}`)
    write(`USER ${nickname} 0 * :${nickname}`)
    const has = (numeric: string) => () => lines.slice(begun).some(line => line.includes(` ${numeric} `))
    await until(has('001'))
    for (const channel of channels) write(`JOIN ${channel}`)
    if (channels.length > 0) await until(has('366'))
  }
  /** once the server has taken everything before it */
  const settled = async () => {
    const key = `k${lines.length}-${Date.now()}`
    write(`PING ${key}`)
    await until(() => lines.some(line => line.includes('PONG') && line.endsWith(key)))
  }
  await join()
  return {
    nickname,
    spoken,
    lines,
    join,
    write,
    settled,
    async say(to: string, text: string) {
      for (const line of text.split('\n')) write(`PRIVMSG ${to} :${line}`)
      await settled()
      spoken.push({ from: nickname, to, text })
    },
    close: () => socket?.destroy(),
  }
}
