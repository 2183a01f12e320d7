import { Hono } from 'hono'
import { expect, test } from 'vitest'
import { channelsAnswer } from '../../api/answers.ts'
import type { Caller } from '../../api/route.ts'
import type { ChannelManager } from './manager.ts'
import { channelRoutes } from './routes.ts'
import { telegram } from './telegram/kind.ts'

const nobody = () => Promise.reject(new Error('nobody asks for this'))
const waiting: ChannelManager = {
  list: () => [
    {
      kind: telegram,
      isInstalled: true,
      isAdded: true,
      status: { isConnected: false, since: 0, confirm: { kind: 'qr', value: 'a secret' } },
      problem: undefined,
    },
  ],
  add: nobody,
  test: nobody,
  remove: nobody,
  sign: () => '',
  unopened: [],
  start: nobody,
}

test.each(['admin', 'approver', 'viewer'] as const)(
  'what has to be confirmed is shown to admins alone: %s',
  async role => {
    const caller: Caller = { name: 'Ann', role, isAtHost: false }
    const list = channelRoutes.find(({ method, path }) => method === 'get' && path === '/channels')
    const app = new Hono().get('/channels', async request => {
      if (!list) throw new Error('no list')
      return list.respond(waiting, request, caller)
    })
    const [channel] = channelsAnswer.parse(await (await app.request('/channels')).json())
    expect(channel).toMatchObject({ connected: false })
    expect(channel?.confirm).toEqual(role === 'admin' ? { kind: 'qr', value: 'a secret' } : null)
  },
)
