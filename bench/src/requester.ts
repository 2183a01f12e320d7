import { startChild } from './children.ts'
import type { Contender } from './contenders.ts'
import { asNumbers } from './shape.ts'

interface Directories {
  requests: string
  responses: string
}

/** Request and receipt through two directories, whoever answers. */
export const requestContender = async (
  name: string,
  directories: Directories,
  end: () => Promise<void>,
  /** a tool of a service to ask; left out: a plain command */
  tool?: string,
): Promise<Contender> => {
  const requester = startChild(new URL('./requester.process.ts', import.meta.url), `requester of ${name}`)
  await requester.call('begin', { ...directories, tool })
  return {
    name,
    block: async count => asNumbers(await requester.call('ask', count)),
    async end() {
      await requester.end()
      await end()
    },
  }
}
