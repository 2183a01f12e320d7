import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { playTour, tourGroups } from '../demo/tour.ts'
import { endAsked } from '../end-asked.ts'
import { complain, exitCodes } from '../failure.ts'
import { positive } from '../options.ts'
import { sayInPassing } from '../output.ts'
import { visible } from '../text.ts'

interface DemoOptions {
  keep?: boolean
  once?: boolean
  port: number
}

const news = fileURLToPath(new URL('../../../../examples/news.service.ts', import.meta.url))

export function addDemo(program: Command): void {
  program
    .command('demo')
    .description(
      'start a daemon with three groups on a directory of its own, and play a tour of what it does',
    )
    .option('--port <number>', 'the port of the console; another one if it is taken', positive, 7717)
    .option('--keep', 'leave the directory there at the end')
    .option('--once', 'play the tour to its end, answering for you, and end')
    .addHelpText('after', '\nExample:\n  $ npx hatchway demo')
    .action(run)
}

async function run(options: DemoOptions): Promise<void> {
  const data = mkdtempSync(join(tmpdir(), 'hatchway-demo-'))
  try {
    await show(data, options)
    process.exitCode = exitCodes.done
  } catch (error) {
    complain(error)
  }
  if (options.keep) sayInPassing(`Everything is still there: npx hatchway up --data ${visible(data)}`)
  else rmSync(data, { recursive: true, force: true })
  process.exit()
}

async function show(data: string, options: DemoOptions): Promise<void> {
  const asked = Promise.withResolvers<void>()
  endAsked(() => asked.resolve())
  const [{ startDaemon }, { configFrom }, api] = await Promise.all([
    import('@hatchway/host'),
    import('@hatchway/host/config'),
    import('@hatchway/host/api'),
  ])
  const config = configFrom(
    {
      data,
      durability: 'process',
      logLevel: 'error',
      web: { port: options.once ? 0 : options.port },
      services: { plugins: [news] },
      // What the accounts are is nobody else's business, so the guard watches what this group's agent reads.
      groups: { work: { containsSecrets: true } },
      agents: { driver: 'concierge' },
    },
    'the demonstration',
  )
  const daemon = await startDaemon(config)
  try {
    for (const group of tourGroups) await daemon.host.addGroup(group)
    const agents = await daemon.agentsReady
    sayInPassing(`A demonstration, on ${data}. Agents run in ${visible(agents?.reason ?? 'nothing')}`)
    if (daemon.web?.link !== undefined) sayInPassing(`\nThe console: ${daemon.web.link}\n`)
    const client = await api.connect(config)
    try {
      const tour = playTour({
        client,
        api,
        ipc: join(data, 'ipc'),
        say: sayInPassing,
        answers: options.once === true,
      })
      await Promise.race([tour, asked.promise])
      // Somebody who has had enough is not waited for.
      tour.catch(() => {})
    } finally {
      await client.close()
    }
    if (options.once) return
    sayInPassing('\nWrite to any of the three yourself, or answer what waits. Ctrl-C ends it all.')
    await asked.promise
  } finally {
    await daemon.stop()
  }
}
