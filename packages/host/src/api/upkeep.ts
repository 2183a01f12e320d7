import { Readable } from 'node:stream'
import { refusal } from '@hatchway/protocol'
import { z } from 'zod'
import { compressed } from '../backup/compression.ts'
import { writeBackup } from '../backup/write.ts'
import { layoutOf } from '../base/layout.ts'
import { checkUp, checkupAnswer } from './checkup.ts'
import { ApiError } from './failure.ts'
import { type HostContext, hostRoute as route } from './host-context.ts'
import { flag } from './requests.ts'
import type { Route } from './route.ts'

const backupQuery = z.object({
  groups: flag.default(true).describe('the groups’ own files, too'),
  token: flag.default(false).describe('what lets a browser in, too'),
  compression: z.enum(['zstd', 'gzip']).default('zstd'),
})

/** Backups, and the doctor's look at a daemon at work. */
export const upkeepRoutes: readonly Route<HostContext>[] = [
  route({
    method: 'post',
    path: '/checkup',
    summary: 'What the doctor has to ask: integrity, channels, services, how files are noticed',
    tag: 'host',
    role: 'admin',
    answer: checkupAnswer,
    handle: ({ host }) => checkUp(host),
  }),
  route({
    method: 'get',
    path: '/backup',
    summary: 'Everything there is, as one archive; only on the daemon’s socket',
    tag: 'host',
    role: 'admin',
    query: backupQuery,
    gives: 'application/octet-stream',
    answer: z.string(),
    handle({ host }, { query, caller }) {
      // It holds what every agent was told in confidence: whoever may read the data directory gets it, and nobody else.
      if (!caller.isAtHost) {
        throw new ApiError(refusal('forbidden', 'A backup is made on the host: hatchway backup FILE.'))
      }
      const source = { store: host.store, layout: layoutOf(host.config.data), now: () => new Date() }
      const archive = compressed(writeBackup(source, query), query.compression)
      return new Response(Readable.toWeb(archive), {
        headers: { 'content-type': 'application/octet-stream', 'cache-control': 'no-store' },
      })
    },
  }),
]
