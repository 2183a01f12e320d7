import { closeSync, constants, fchmodSync, lstatSync, openSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import type { Checkup } from '../api/answers.ts'
import { readLockOwner } from '../base/lock-owner.ts'
import { bad, type DoctorContext, type Finding, good, some, warning } from './types.ts'

const answerMs = 2000

/** How people and services are reached, and how people reach us. */
export const reach = async (patient: DoctorContext): Promise<Finding[]> => [
  ...channels(patient),
  ...services(patient),
  ...(await web(patient)),
  ...token(patient),
]

function channels({ checkup, lockOwner }: DoctorContext): Finding[] {
  if (!checkup || lockOwner !== 'daemon') return []
  const only = (wanted: string) =>
    Object.entries(checkup.channels)
      .filter(([, name]) => name === wanted)
      .map(([folder]) => folder)
  const unreached = [...only('log'), ...only('none')]
  return [
    unreached.length === 0
      ? good('channels', 'Every group’s chat is reached.')
      : warning(
          'channels',
          `No channel reaches the chats of ${some(unreached)}: what their agents say is in the console and the log only. Give them a chat that a channel reaches; see docs/channels/README.md.`,
        ),
    ...checkup.channel_problems.flatMap(({ channel, problem }) => {
      const users = only(channel)
      return users.length === 0
        ? []
        : [bad('channels', `The channel ${channel}, which ${some(users)} need, cannot be used: ${problem}`)]
    }),
    ...checkup.liveness.map(liveness),
    ...checkup.troubled.map(({ channel, waiting, error }) =>
      warning(
        'channels',
        `${channel} could not deliver ${waiting} of its messages so far, which are tried again. It last said: ${error}`,
      ),
    ),
  ]
}

/** A token that was revoked is seen here before anybody waits for an answer. */
function liveness(found: Checkup['liveness'][number]): Finding {
  const { channel, connected, since, last_error, limited_until, to_confirm } = found
  if (to_confirm)
    return warning(
      'channels',
      `${channel} waits for you to confirm it. Run: npx hatchway channels add ${channel}`,
    )
  if (!connected)
    return last_error === null
      ? warning('channels', `${channel} is not connected yet.`)
      : bad(
          'channels',
          `${channel} has not been connected since ${since}, so nobody is heard there; it is tried again. It last said: ${last_error}`,
        )
  if (limited_until !== null)
    return warning('channels', `${channel} asks to wait until ${limited_until}; messages go on after that.`)
  return last_error === null
    ? good('channels', `${channel} is connected.`)
    : warning('channels', `${channel} is connected; the last thing that went wrong: ${last_error}`)
}

function services({ checkup, lockOwner }: DoctorContext): Finding[] {
  if (!checkup || lockOwner !== 'daemon') return []
  const broken = checkup.services.filter(({ ok }) => !ok)
  return broken.length === 0
    ? [good('services', `${checkup.services.length} can be used.`)]
    : broken.map(({ name, text }) => warning('services', `${name} cannot be used: ${text}`))
}

async function web({ config, lockOwner }: DoctorContext): Promise<Finding[]> {
  const { enabled, port } = config.web
  if (enabled === 'no') return []
  if (lockOwner === 'daemon') {
    // Somebody answers on many ports: which one is the console's, only the daemon knows.
    const own = readLockOwner(config.data)?.webPort
    if (own === undefined)
      return [warning('web', 'The daemon does not say on which port the console is. Start it again.')]
    if (!(await answers(config.web.host, own)))
      return [bad('web', `The console has port ${own} and does not answer. Look at the daemon’s log.`)]
    return port === 0 || port === own
      ? [good('web', `The console answers on port ${own}.`)]
      : [
          warning(
            'web',
            `Port ${port} was another program’s when the daemon began; the console is on port ${own}. End that program and start the daemon again, or set \`web.port\`.`,
          ),
        ]
  }
  if (port === 0) return []
  return (await isFree(port))
    ? [good('web', `Port ${port} is free.`)]
    : [
        warning(
          'web',
          `Port ${port} is taken by another program, so that the next free one will be used. Set \`web.port\` to have one of your own.`,
        ),
      ]
}

const answers = (host: string, port: number) =>
  new Promise<boolean>(resolve => {
    const everywhere: Record<string, string> = { '0.0.0.0': '127.0.0.1', '::': '::1' }
    const socket = connect({ host: everywhere[host] ?? host, port, timeout: answerMs })
    const done = (answer: boolean) => {
      socket.destroy()
      resolve(answer)
    }
    socket.once('connect', () => done(true))
    socket.once('timeout', () => done(false))
    socket.once('error', () => done(false))
  })

const isFree = (port: number) =>
  new Promise<boolean>(resolve => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen({ host: '127.0.0.1', port }, () => server.close(() => resolve(true)))
  })

/** Who can read it is the operator. */
function token({ layout }: DoctorContext): Finding[] {
  const path = join(layout.state, 'web-token')
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (!found) return []
  if (!found.isFile())
    return [bad('web token', `${path} is not a file. Remove it; the next start makes a new one.`)]
  return (found.mode & 0o077) === 0
    ? [good('web token', 'Only this user can read it.')]
    : [
        bad(
          'web token',
          `${path} can be read by others, who are operators with it. Run doctor --fix; if somebody may have read it, remove it, which signs every browser out.`,
          () => {
            const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW)
            try {
              fchmodSync(fd, 0o600)
            } finally {
              closeSync(fd)
            }
            return 'set its mode to 600'
          },
        ),
      ]
}
