import { Hono } from 'hono'
import { expect, test } from 'vitest'
import { lentServersAnswer } from '../../api/answers.ts'
import type { Caller } from '../../api/route.ts'
import type { LentServerManager } from './manager.ts'
import { lentServerRoutes } from './routes.ts'

const nobody = () => Promise.reject(new Error('nobody asks for this'))
const url = 'https://example.com/k-e-y/mcp?token=s-e-c-r-e-t'
const manager: LentServerManager = {
  list: () => [
    { name: 'remote', settings: { url }, isAdded: true, state: undefined, tools: undefined },
    {
      name: 'local',
      settings: { command: ['run', '--key', 's-e-c-r-e-t'] },
      isAdded: true,
      state: undefined,
      tools: undefined,
    },
  ],
  try: nobody,
  add: nobody,
  test: nobody,
  remove: nobody,
  service: { name: 'mcp', tools: () => [] },
}

test.each([
  [false, ['https://example.com', 'run']],
  [true, [url, 'run --key s-e-c-r-e-t']],
])(
  'where a server is, with the keys that may be in it, is told at the host alone: at the host %s',
  async (isAtHost, where) => {
    const caller: Caller = { name: 'Ann', role: 'viewer', isAtHost }
    const list = lentServerRoutes.find(({ method, path }) => method === 'get' && path === '/mcp')
    const app = new Hono().get('/mcp', async request => {
      if (!list) throw new Error('no list')
      return list.respond(manager, request, caller)
    })
    const servers = lentServersAnswer.parse(await (await app.request('/mcp')).json())
    expect(servers.map(server => server.where)).toEqual(where)
  },
)
