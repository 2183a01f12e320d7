import {
  chownSync,
  closeSync,
  constants,
  copyFileSync,
  fchownSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
} from 'node:fs'
import { join } from 'node:path'
import type { Owner } from '@hatchway/spool'

export interface Copied {
  state: 'taken' | 'there' | 'left'
  says: string
}

/** Logs of containers, which are of no use elsewhere. */
const passedBy = new Set(['logs'])
const noFollow = constants.O_RDONLY | constants.O_NOFOLLOW

/**
 * Copies a group's files. What is there already stays: a file of another content is told of, not replaced. Links are
 * left behind, as they lead to where the other installation was.
 */
export function createCopier({ dryRun }: { dryRun: boolean }) {
  return {
    /** undefined: there is nothing; `below`: directories on the way to it that may have to be made */
    copy(
      from: string,
      to: string,
      isAgents: boolean,
      owner: Owner | undefined,
      below: readonly string[] = [],
    ): Copied | undefined {
      if (!lstatSync(from, { throwIfNoEntry: false })?.isDirectory()) return undefined
      const count = { taken: 0, there: 0, other: [] as string[], links: 0 }
      const give = (path: string) => {
        if (!owner || !isAgents) return
        const fd = openSync(path, noFollow)
        try {
          fchownSync(fd, owner.uid, owner.gid)
        } finally {
          closeSync(fd)
        }
      }
      const makeDirectory = (path: string) => {
        if (lstatSync(path, { throwIfNoEntry: false }) || dryRun) return
        mkdirSync(path, { mode: isAgents ? 0o700 : 0o755 })
        if (owner && isAgents) chownSync(path, owner.uid, owner.gid)
      }
      const copyAll = (source: string, target: string, at: string) => {
        makeDirectory(target)
        for (const entry of readdirSync(source, { withFileTypes: true })) {
          const path = join(at, entry.name)
          const [a, b] = [join(source, entry.name), join(target, entry.name)]
          const found = lstatSync(b, { throwIfNoEntry: false })
          if (entry.isSymbolicLink()) count.links++
          else if (entry.isDirectory()) {
            if (at === '' && passedBy.has(entry.name)) continue
            if (found && !found.isDirectory()) count.other.push(path)
            else copyAll(a, b, path)
          } else if (!entry.isFile()) continue
          else if (!found) {
            count.taken++
            if (dryRun) continue
            copyFileSync(a, b, constants.COPYFILE_EXCL)
            give(b)
          } else if (found.isFile() && readFileSync(a).equals(readFileSync(b))) count.there++
          else count.other.push(path)
        }
      }
      let target = to
      for (const name of below) {
        makeDirectory(target)
        target = join(target, name)
        const found = lstatSync(target, { throwIfNoEntry: false })
        // An agent could have put a link there, to anywhere.
        if (found && !found.isDirectory()) return { state: 'left', says: `${target} is not a directory.` }
      }
      copyAll(from, target, '')
      return told(count)
    },
  }
}

function told(count: { taken: number; there: number; other: string[]; links: number }): Copied {
  const says = [
    count.taken > 0 ? `${count.taken} files.` : '',
    count.there > 0 ? `${count.there} were there already.` : '',
    count.other.length > 0
      ? `${count.other.length} differ from what is here, which stays: ${count.other.slice(0, 5).join(', ')}.`
      : '',
    count.links > 0 ? `${count.links} links were left behind.` : '',
  ].filter(part => part !== '')
  const state = count.taken > 0 ? 'taken' : count.other.length > 0 ? 'left' : 'there'
  return { state, says: says.join(' ') || 'There are none.' }
}
