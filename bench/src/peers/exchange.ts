import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { startChild } from '../children.ts'
import type { Contender } from '../contenders.ts'
import { requestContender } from '../requester.ts'

/** Two bare Node processes that answer each other with files, and no database between them. */
export const exchangeContender = async (base: string): Promise<Contender> => {
  const directories = {
    requests: join(base, 'exchange', 'tasks'),
    responses: join(base, 'exchange', 'responses'),
  }
  for (const directory of Object.values(directories)) mkdirSync(directory, { recursive: true })
  const host = startChild(new URL('./exchange.process.ts', import.meta.url), 'bare responder')
  await host.call('begin', directories)
  return requestContender('two bare Node processes', directories, host.end)
}
