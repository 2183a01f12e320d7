import { join } from 'node:path'
import { startChild } from '../children.ts'
import type { Contender } from '../contenders.ts'
import { asNumbers } from '../shape.ts'

export const echoName = 'unix socket echo'

/** Two bare Node processes on a unix socket: what a request and its answer cost when nothing is kept or checked. */
export const echoContender = async (base: string): Promise<Contender> => {
  const file = new URL('./echo.process.ts', import.meta.url)
  const path = join(base, 'echo.sock')
  const server = startChild(file, 'echo')
  await server.call('listen', path)
  const client = startChild(file, 'client of the echo')
  await client.call('begin', path)
  return {
    name: echoName,
    block: async count => asNumbers(await client.call('ask', count)),
    async end() {
      await client.end()
      await server.end()
    },
  }
}
