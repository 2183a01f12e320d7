import { pino } from 'pino'
import { createLentServer } from '../lent-server.ts'
import { lentServersSchema } from '../settings.ts'

/** Lends two servers, one of which nothing but SIGKILL ends, and tells who they are. */
const server = new URL('./odd-server.process.ts', import.meta.url).pathname
const servers = lentServersSchema.parse({
  mortal: { command: [process.execPath, server] },
  immortal: { command: [process.execPath, server, 'immortal'] },
})
const services = Object.entries(servers).map(([name, settings]) =>
  createLentServer({ name, settings, environment: process.env, version: '1.0.0', leaveFile: async () => '' }),
)
const log = pino({ level: 'silent' })

const pids = services.map(
  service =>
    new Promise<number>(resolve => {
      const changed = async () => {
        const who = service.tools().find(({ name }) => name.endsWith('_who'))
        if (!service.state?.().ok || who?.kind !== 'later') return
        const answer = await who.call(
          {},
          {
            group: { folder: 'main', jid: 'web:main', name: 'Main', main: true },
            requestId: 'request',
            signal: new AbortController().signal,
            progress: () => {},
            log,
            timezone: 'UTC',
          },
        )
        resolve(Number(/"text":"(\d+)"/.exec(JSON.stringify(answer))?.[1]))
      }
      void service.start?.({ changed, log })
    }),
)
console.log(JSON.stringify(await Promise.all(pids)))
