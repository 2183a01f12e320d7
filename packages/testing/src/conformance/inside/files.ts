import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually, isThere } from './boxes.ts'
import { check } from './evidence.ts'
import type { Kit } from './kit.ts'

/** as a shell in the agent writes: nothing is renamed, and the file is there before it is whole */
const shell = (script: string, ...args: string[]) => execFileSync('/bin/sh', ['-c', script, 'sh', ...args])

/** One that prints, thinks for a while, and prints the rest: the file is open all the time. */
async function inHalves(path: string, text: string): Promise<void> {
  const script = 'exec > "$1"; printf %s "$2"; read go; printf %s "$3"'
  const middle = Math.floor(text.length / 2)
  const args = ['-c', script, 'sh', path, text.slice(0, middle), text.slice(middle)]
  const writer = spawn('/bin/sh', args, { stdio: ['pipe', 'ignore', 'inherit'] })
  await sleep(900)
  writer.stdin.end('\n')
  await once(writer, 'exit')
}

export async function writeFiles(kit: Kit): Promise<void> {
  const { ipc, who } = kit
  const harmless = (text: string) => kit.harmless(`${who.folder}: ${text}`)
  const at = (directory: string, name: string) => join(ipc, directory, name)
  const seconds = () => Math.floor(Date.now() / 1000)

  await check('taken', async () => {
    const { directory, body } = harmless('taken')
    const name = kit.post(directory, body)
    await eventually(`${name} is taken`, () => !isThere(at(directory, name)))
  })

  if (kit.temporaryName) {
    const { directory, body } = harmless('never')
    writeFileSync(at(directory, kit.temporaryName()), JSON.stringify(body))
  }

  const echoed = at('tasks', `refresh_${seconds()}.json`)
  shell('echo "$1" > "$2"', JSON.stringify(kit.refreshBody), echoed)

  const { directory, body } = harmless('halves')
  await inHalves(at(directory, `halves_${seconds()}.json`), JSON.stringify(body))

  for (let i = 0; i < 30; i++) {
    const { directory, body } = harmless(`order ${String(i).padStart(2, '0')}`)
    kit.post(directory, body)
  }

  kit.post('tasks', { ...kit.harmless('').body, type: 'dance' })
  closeSync(openSync(at('tasks', `empty_${seconds()}.json`), 'w'))
}
