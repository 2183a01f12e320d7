import { execFile } from 'node:child_process'
import { closeSync, fdatasyncSync, openSync, statfsSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Contender } from './contenders.ts'
import { idleGap, pause } from './post.ts'

const run = promisify(execFile)

/** Both sides of a comparison begin with nothing waiting to be written. */
export const syncDisk = async () => {
  await run('sync')
}

/** Node's own `rm` takes a thread pool's turn per entry; for a million files the tool made for it is faster. */
export const removeTree = async (path: string) => {
  await run('rm', ['-rf', '--', path])
}

const filesystems = new Map([
  [0xef53, 'ext4'],
  [0x01021994, 'tmpfs'],
  [0x58465342, 'xfs'],
  [0x9123683e, 'btrfs'],
  [0x794c7630, 'overlay'],
  [0x2fc12fc1, 'zfs'],
])

export const filesystemOf = (directory: string): string => {
  const { type } = statfsSync(directory)
  return filesystems.get(type) ?? `0x${type.toString(16)}`
}

const block = Buffer.alloc(4096, 'x')

/** What one fsync of this disk costs: 4 KiB appended and synced, with the same pauses as between messages. */
export const fsyncContender = (directory: string): Contender => {
  const file = openSync(join(directory, 'fsync'), 'a')
  return {
    name: 'fsync',
    async block(count) {
      const samples: number[] = []
      for (let index = 0; index < count; index++) {
        await pause(idleGap)
        const start = process.hrtime.bigint()
        writeSync(file, block)
        fdatasyncSync(file)
        samples.push(Number(process.hrtime.bigint() - start) / 1000)
      }
      return samples
    },
    async end() {
      closeSync(file)
    },
  }
}
