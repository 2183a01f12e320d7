import { z } from 'zod'
import { createClient, findServer, MatrixRefusal } from './client.ts'
import type { KeyStore, Session } from './key-store.ts'
import type { MatrixSettings } from './settings.ts'

const loginSchema = z.object({ user_id: z.string(), device_id: z.string(), access_token: z.string() })
const whoamiSchema = z.object({ user_id: z.string(), device_id: z.string().optional() })

/** Logs in as a device; without the id of one, as a new one. */
export async function logIn(
  server: string,
  { user, password }: Pick<MatrixSettings, 'user' | 'password'>,
  more: { device?: string; signal: AbortSignal },
): Promise<z.output<typeof loginSchema>> {
  const client = createClient({ server, secrets: [password], signal: more.signal })
  const body = {
    type: 'm.login.password',
    identifier: { type: 'm.id.user', user },
    password,
    initial_device_display_name: 'Hatchway',
    ...(more.device !== undefined && { device_id: more.device }),
  }
  try {
    return await client.ask(loginSchema, 'POST', ['v3', 'login'], { body })
  } catch (error) {
    if (!(error instanceof MatrixRefusal)) throw error
    if (error.code === 'M_FORBIDDEN')
      throw new Error(`The homeserver does not know ${user} with this password.`)
    if (error.code === 'M_UNRECOGNIZED' || error.status === 404)
      throw new Error(`There is no homeserver at ${server}. Its address is in your Matrix app's settings.`)
    if (error.code === 'M_UNKNOWN')
      throw new Error('This homeserver takes no password from apps. Give an access token instead.')
    throw error
  }
}

/** Whose session a token is. */
export async function whoIs(
  server: string,
  { user, token }: Pick<MatrixSettings, 'user' | 'token'>,
  signal: AbortSignal,
): Promise<{ device: string }> {
  const client = createClient({ server, secrets: [], token, signal })
  const who = await client.ask(whoamiSchema, 'GET', ['v3', 'account', 'whoami'])
  if (who.user_id !== user) throw new Error(`This access token is of ${who.user_id}, and not of ${user}.`)
  if (who.device_id === undefined)
    throw new Error('This access token belongs to no device. Log in with an app, and take the token of that.')
  return { device: who.device_id }
}

/** The session that is stored, if it is one of these settings, or a new one. */
export async function beginSession(
  keys: KeyStore,
  settings: MatrixSettings,
  signal: AbortSignal,
): Promise<Session> {
  const { server: given, user, token } = settings
  const before = keys.session()
  const isSame = before?.given === given && before.user === user
  if (before && isSame && before.token !== '' && (token === '' || token === before.token)) return before
  const server = await findServer(given, signal)
  const kept = isSame && before.token === '' ? { device: before.device } : {}
  const session =
    token === ''
      ? await logIn(server, settings, { ...kept, signal }).then(({ device_id: device, access_token }) => ({
          device,
          token: access_token,
        }))
      : { ...(await whoIs(server, settings, signal)), token }
  const next = { given, server, user, ...session }
  keys.begin(next)
  return next
}

/** The server has ended it: the next one is a new device, unless it said that this one may go on. */
export const endSession = (keys: KeyStore, session: Session, isSoft: boolean): void =>
  keys.begin(isSoft ? { ...session, token: '' } : undefined)
