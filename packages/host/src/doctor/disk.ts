import { existsSync, lstatSync, readdirSync, rmSync, statfsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { errorCode } from '@hatchway/spool'
import { bad, type DoctorContext, type Finding, good, some, warning } from './types.ts'

const gibibyte = 1_073_741_824
const mebibyte = 1_048_576
const fewInodes = 50_000

export function disk({ config, checkup }: DoctorContext): Finding[] {
  let place = config.data
  while (!existsSync(place)) place = dirname(place)
  const { bavail, bsize, ffree, files } = statfsSync(place)
  const free = bavail * bsize
  const says = `${(free / gibibyte).toFixed(1)} GiB free for the data directory.`
  const space = checkup?.problem
    ? bad('disk', `${checkup.problem} ${says}`)
    : free < 64 * mebibyte
      ? bad('disk', `${says} Commands are no longer accepted when it is full: make room.`)
      : free < gibibyte
        ? warning('disk', `${says} Make room soon, or keep less (\`keep\`, \`limits.errorBytes\`).`)
        : good('disk', says)
  // Some file systems have no limit, and say 0.
  if (files === 0) return [space]
  return [
    space,
    ffree < fewInodes
      ? warning(
          'inodes',
          `Only ${ffree} more files can be made on the data directory’s file system. Remove what is not needed.`,
        )
      : good('inodes', `${ffree} more files can be made.`),
  ]
}

const dayMs = 86_400_000

/** What a process that was killed has left half-written. While somebody is at work it may be theirs. */
export function leftovers({ config, layout, lockOwner, now }: DoctorContext): Finding[] {
  const found = [
    ...namesIn(layout.staging).map(name => join(layout.staging, name)),
    ...namesIn(layout.state)
      .filter(name => name.startsWith('backup-'))
      .map(name => join(layout.state, name)),
    ...namesIn(dirname(config.data))
      .filter(name => name.startsWith(`.${config.data.split('/').at(-1)}-restore-`))
      .map(name => join(dirname(config.data), name)),
  ].filter(path => lockOwner === 'nobody' || ageOf(path, now()) > dayMs)
  if (found.length === 0) return [good('half-written', 'Nothing half-written lies about.')]
  return [
    warning(
      'half-written',
      `${some(found)} were left by a process that did not get to its end. They are of no use; --fix removes them.`,
      () => {
        // Removed as it is: a link is unlinked, and nothing behind it is touched.
        for (const path of found) rmSync(path, { recursive: true, force: true })
        return `removed ${found.length}`
      },
    ),
  ]
}

const ageOf = (path: string, now: number): number =>
  now - (lstatSync(path, { throwIfNoEntry: false })?.mtimeMs ?? now)

function namesIn(path: string): string[] {
  try {
    return readdirSync(path)
  } catch (error) {
    if (['ENOENT', 'EACCES', 'ENOTDIR'].includes(errorCode(error))) return []
    throw error
  }
}
