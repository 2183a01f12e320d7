import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { command } from '../command.ts'
import { onEndRequested } from '../end-requested.ts'
import { exitCodes, runToExit } from '../failure.ts'
import { flag, parsed, positive, withDefault } from '../inputs.ts'
import { announce } from '../output.ts'
import { visible } from '../text.ts'

const newsService = fileURLToPath(new URL('../../../../examples/news.service.ts', import.meta.url))

export default command(
  'demo',
  'start a daemon with three groups in a temporary directory, and show what it does',
  {
    bare: true,
    input: {
      port: withDefault(parsed('number', 'the console’s port; another one if it is taken', positive), 7717),
      keep: flag('keep the directory at the end'),
      once: flag('play the demo without questions to you, and exit'),
    },
    run: ({ port, keep, once = false }) =>
      runToExit(async () => {
        const data = mkdtempSync(join(tmpdir(), 'hatchway-demo-'))
        try {
          await play(data, port, once)
        } finally {
          if (keep) announce(`The data is still there: npx hatchway up --data ${visible(data)}`)
          else rmSync(data, { recursive: true, force: true })
        }
        return exitCodes.done
      }),
  },
)

async function play(data: string, port: number, once: boolean): Promise<void> {
  const ending = Promise.withResolvers<void>()
  onEndRequested(() => ending.resolve())
  const [{ playTour, tourGroups }, { startDaemon }, { configFrom }, api] = await Promise.all([
    import('../demo/tour.ts'),
    import('@hatchway/host'),
    import('@hatchway/host/config'),
    import('@hatchway/host/api'),
  ])
  const config = configFrom(
    {
      data,
      durability: 'process',
      logLevel: 'error',
      web: { port: once ? 0 : port },
      services: { plugins: [newsService] },
      // This group knows secrets, so the guard watches what its agent reads.
      groups: { work: { containsSecrets: true } },
      agents: { driver: 'concierge' },
    },
    'the demo',
  )
  const daemon = await startDaemon(config)
  try {
    for (const group of tourGroups) await daemon.host.addGroup(group)
    const agents = await daemon.agentsReady
    announce(`A demo in ${data}. Agents run in ${visible(agents?.reason ?? 'nothing')}`)
    if (daemon.web?.link !== undefined) announce(`\nThe console: ${daemon.web.link}\n`)
    const client = await api.connect(config)
    try {
      const tour = playTour({ client, api, ipc: join(data, 'ipc'), say: announce, answers: once })
      await Promise.race([tour, ending.promise])
    } finally {
      await client.close()
    }
    if (once) return
    announce('\nWrite to any of the three groups, or answer what is waiting. Ctrl-C ends the demo.')
    await ending.promise
  } finally {
    await daemon.stop()
  }
}
