import { spawn } from 'node:child_process'
import { platform } from '@hatchway/host/platform'
import { command } from '../command.ts'
import { Failure } from '../failure.ts'
import { flag } from '../inputs.ts'
import { note, printJson, printLine } from '../output.ts'
import { findData } from '../service/data.ts'

export default command('open', 'open the console in the browser, or print its link', {
  example: '\n--print',
  input: { print: flag('only print it') },
  async run({ print, json, ...options }) {
    const data = await findData(options)
    const { findDaemon } = await import('@hatchway/host/api')
    const daemon = await findDaemon(data)
    if (!daemon)
      throw new Failure(
        `No daemon runs on ${data}. Start it with: hatchway up, or hatchway service install. Name another data directory with --data.`,
      )
    if (daemon.link === undefined)
      throw new Failure(
        daemon.ready
          ? 'This daemon serves no console. Turn it on in the configuration: web.enabled'
          : 'The daemon is still starting. Try again in a moment.',
      )
    if (json) return printJson({ link: daemon.link })
    await printLine(daemon.link)
    const opener = print ? undefined : platform.opener(process.env)
    if (opener === undefined) return
    // Not waited for: some openers become the browser.
    const [program, ...args] = opener
    const child = spawn(program, [...args, daemon.link], { detached: true, stdio: 'ignore' })
    child.on('error', ({ message }) =>
      note(`${program} did not open it (${message}). Open the link yourself.`),
    )
    child.unref()
  },
})
