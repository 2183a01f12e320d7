import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { openHouse } from '../house.ts'

type House = Awaited<ReturnType<typeof openHouse>>

const cli = join(import.meta.dirname, '..', '..', '..', 'cli', 'bin', 'hatchway.mjs')

/** Everything a person would look at after an attack, as it comes to their terminal. */
export async function screensOf(house: House, folder: string): Promise<Record<string, string>> {
  const runs = (await house.runs(folder)).slice(-5)
  const errors: { id?: unknown }[] = JSON.parse(await house.hatchway('errors', 'list', '--json')).slice(-300)
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
      screens[name] = await house
        .hatchway(...args, ...more)
        .catch(error => `${error.stdout ?? ''}${error.stderr ?? error}`)
    }
  }
  screens.tail = await tail(house)
  return screens
}

/** The lines of the last commands; it would go on with those to come. */
async function tail(house: House): Promise<string> {
  const child = spawn(process.execPath, [cli, 'tail', '--lines', '3000', '--data', house.data], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
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
