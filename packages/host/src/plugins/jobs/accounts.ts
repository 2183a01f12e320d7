import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { promisify } from 'node:util'

/** A user of this machine. */
export interface Account {
  name: string
  uid: number
  gid: number
  home: string
}

/** Whom this process runs as. A container's user need not have a name. */
export function ownAccount(): Account {
  const uid = process.getuid?.() ?? -1
  const gid = process.getgid?.() ?? -1
  try {
    const { username, homedir } = userInfo()
    return { name: username, uid, gid, home: homedir }
  } catch (error) {
    if (error instanceof Error && 'code' in error)
      return { name: String(uid), uid, gid, home: process.env.HOME ?? '/' }
    throw error
  }
}

const call = promisify(execFile)

/** Undefined: this machine has no such user. */
export async function accountOf(name: string): Promise<Account | undefined> {
  return lineOf(name, await readFile('/etc/passwd', 'utf8')) ?? lineOf(name, await fromDirectory(name))
}

/** For users that come from a directory on another machine. */
async function fromDirectory(name: string): Promise<string> {
  try {
    return (await call('getent', ['passwd', '--', name])).stdout
  } catch (error) {
    // There is no such user, or no such program.
    if (error instanceof Error && 'code' in error) return ''
    throw error
  }
}

function lineOf(wanted: string, text: string): Account | undefined {
  for (const line of text.split('\n')) {
    const [name = '', , uid = '', gid = '', , home = ''] = line.split(':')
    if (name === wanted && /^\d+$/.test(uid) && /^\d+$/.test(gid))
      return { name, uid: Number(uid), gid: Number(gid), home }
  }
  return undefined
}
