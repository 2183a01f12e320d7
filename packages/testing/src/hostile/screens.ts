import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { openInstallation } from '../daemon/installation.ts'
import { hatchwayProgram } from '../paths.ts'

type Installation = Awaited<ReturnType<typeof openInstallation>>

/** Everything a person would look at after an attack, as it comes to their terminal. */
export async function screensOf(installation: Installation, folder: string): Promise<Record<string, string>> {
  const runs = (await installation.runs(folder)).slice(-5)
  const errors: { id?: unknown }[] = JSON.parse(
    await installation.hatchway('errors', 'list', '--json'),
  ).slice(-300)
  const commands = [
    ['errors', 'list'],
    ...errors.slice(-3).flatMap(({ id }) => (typeof id === 'string' ? [['errors', 'show', id]] : [])),
    ['messages', 'list', '--limit', '2000'],
    ['tasks', 'list'],
    ['audit', 'list', '--limit', '1000'],
    ['approvals', 'list', '--all'],
    ['runs', 'list'],
    ...runs.map(({ id }) => ['runs', 'show', id]),
    ['groups', 'list'],
    ['services', 'list'],
    ['taints', 'list'],
    ['usage'],
  ]
  const screens: Record<string, string> = {}
  for (const args of commands) {
    for (const more of [[], ['--json']]) {
      const name = [...args, ...more].join(' ')
      screens[name] = await installation
        .hatchway(...args, ...more)
        .catch(error => `${error.stdout ?? ''}${error.stderr ?? error}`)
    }
  }
  screens.tail = await tail(installation)
  return screens
}

/** The lines of the last commands; it would go on with those to come. */
async function tail(installation: Installation): Promise<string> {
  const child = spawn(
    process.execPath,
    [hatchwayProgram, 'tail', '--lines', '3000', '--data', installation.data],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  let text = ''
  child.stdout.on('data', chunk => {
    text += chunk
  })
  child.stderr.on('data', chunk => {
    text += chunk
  })
  const timer = setTimeout(() => child.kill('SIGTERM'), 4000)
  await once(child, 'close')
  clearTimeout(timer)
  return text
}
