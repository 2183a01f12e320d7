import { spawn } from 'node:child_process'
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createNames, post } from '@hatchway/spool'
import { layoutOf } from '../../../host/src/base/layout.ts'

/** A process of its own that does nothing but post messages, each with a text of its own, as fast as it can. */
export interface Load {
  data: string
  folders: readonly string[]
  /** the texts are `{prefix}-0`, `{prefix}-1`, … */
  prefix: string
  count: number
  /** under which names, written how; Hatchway's carry a sequence number, NanoClaw's only their millisecond */
  names: 'hatchway' | 'nanoclaw'
}

export const folderOfText = (load: Load, number: number): string =>
  load.folders[number % load.folders.length] ?? ''

/** Resolves when everything is posted. */
export function produce(load: Load): Promise<void> {
  const child = spawn(process.execPath, [import.meta.filename, JSON.stringify(load)], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('exit', code => (code === 0 ? resolve() : reject(new Error(`the producer ended with ${code}`))))
  })
}

function postAll(load: Load): void {
  const { ipc } = layoutOf(load.data)
  const freshName = createNames()
  const timestamp = new Date().toISOString()
  for (let i = 0; i < load.count; i++) {
    const folder = folderOfText(load, i)
    const text = `${load.prefix}-${i}`
    const content = JSON.stringify({
      type: 'message',
      chatJid: `${folder}@chat`,
      text,
      groupFolder: folder,
      timestamp,
    })
    const directory = join(ipc, folder, 'messages')
    if (load.names === 'hatchway') post(directory, content, { name: freshName() })
    else postAsNanoClaw(directory, content)
  }
}

function postAsNanoClaw(directory: string, content: string): void {
  const path = join(directory, `${Date.now()}-${Math.random().toString(36).slice(2, 8)}.json`)
  writeFileSync(`${path}.tmp`, content)
  renameSync(`${path}.tmp`, path)
}

if (process.argv[1] === import.meta.filename) postAll(JSON.parse(process.argv[2] ?? ''))
