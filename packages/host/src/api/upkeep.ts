import { Readable } from 'node:stream'
import { refusal } from '@hatchway/protocol'
import { z } from 'zod'
import { compressed, hasZstd } from '../backup/compression.ts'
import { writeBackup } from '../backup/write.ts'
import { layoutOf } from '../base/layout.ts'
import { checkupAnswer } from './answers.ts'
import { checkUp } from './checkup.ts'
import { ApiError } from './failure.ts'
import type { HostContext } from './host.ts'
import { flag } from './requests.ts'
import { type Route, routesOf } from './route.ts'

const route = routesOf<HostContext>('host')

const backupQuery = z.object({
  groups: flag.default(true).describe('the groups’ own files, too'),
  token: flag.default(false).describe('what lets a browser in, too'),
  compression: z.enum(['zstd', 'gzip']).default(hasZstd ? 'zstd' : 'gzip'),
})

/** Backups, and the doctor's look at a daemon at work. */
export const upkeepRoutes: readonly Route<HostContext>[] = [
  route.post('/checkup', {
    summary: 'What the doctor has to ask: integrity, channels, services, how files are noticed',
    role: 'admin',
    answer: checkupAnswer,
    handle: ({ host }) => checkUp(host),
  }),
  route.get('/backup', {
    summary: 'Everything there is, as one archive; only on the daemon’s socket',
    role: 'admin',
    query: backupQuery,
    gives: 'application/octet-stream',
    answer: z.string(),
    handle({ host }, { query, caller }) {
      // It holds what every agent was told in confidence: whoever may read the data directory gets it, and nobody else.
      if (!caller.isAtHost) {
        throw new ApiError(refusal('forbidden', 'A backup is made on the host: hatchway backup FILE.'))
      }
      if (query.compression === 'zstd' && !hasZstd) {
        const why = `Node ${process.versions.node}, which runs the daemon, has no zstd; 22.15 and newer have it.`
        throw new ApiError(refusal('unavailable', `${why} Give the file a name that ends in .gz.`))
      }
      const source = { store: host.store, layout: layoutOf(host.config.data), now: () => new Date() }
      const archive = compressed(writeBackup(source, query), query.compression)
      return new Response(Readable.toWeb(archive), {
        headers: { 'content-type': 'application/octet-stream', 'cache-control': 'no-store' },
      })
    },
  }),
]
