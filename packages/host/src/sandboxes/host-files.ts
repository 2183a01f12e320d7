import { lstatSync, readlinkSync, realpathSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Mount } from './types.ts'

/**
 * What of the host's own system a run sees when no image is given: the programs and libraries that Node and a shell
 * need, read-only, and nothing of /etc beyond what they look up. Shared by bubblewrap and the container engines.
 */
export interface HostFiles {
  /** /bin → usr/bin and the like */
  links: readonly { at: string; to: string }[]
  mounts: readonly Mount[]
  made: readonly { path: string; content: string }[]
  /** directories that must be there for mounts to be laid on */
  directories: readonly string[]
}

const systemDirectories = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32']

// /etc/ssl has private keys beside the certificates, so only its parts.
const lookedUp = [
  '/etc/ld.so.cache',
  '/etc/localtime',
  '/etc/alternatives',
  '/etc/ssl/certs',
  '/etc/ssl/openssl.cnf',
  '/etc/pki/tls/certs',
  '/etc/pki/ca-trust/extracted',
]

export function hostFiles(user: { uid: number; gid: number }): HostFiles {
  const links: { at: string; to: string }[] = []
  const mounts: Mount[] = []
  for (const path of [...systemDirectories, ...lookedUp]) {
    const found = lstatSync(path, { throwIfNoEntry: false })
    if (!found) continue
    if (found.isSymbolicLink() && systemDirectories.includes(path))
      links.push({ at: path, to: readlinkSync(path) })
    else mounts.push({ from: realpathSync(path), to: path, writable: false })
  }
  return {
    links,
    mounts,
    made: [...accountFiles(user), { path: '/etc/hosts', content: '127.0.0.1 localhost\n::1 localhost\n' }],
    directories: ['/etc', '/home', '/opt', '/run', '/tmp', '/workspace'],
  }
}

/** Programs look up the name of their own user, and some do not start without one. */
export function accountFiles({
  uid,
  gid,
}: {
  uid: number
  gid: number
}): { path: string; content: string }[] {
  const root = uid === 0 ? '' : 'root:x:0:0:root:/root:/usr/sbin/nologin\n'
  const rootGroup = gid === 0 ? '' : 'root:x:0:\n'
  return [
    { path: '/etc/passwd', content: `${root}agent:x:${uid}:${gid}:agent:/home/agent:/bin/sh\n` },
    { path: '/etc/group', content: `${rootGroup}agent:x:${gid}:\n` },
  ]
}

/** Every directory above these paths, the upper ones first. */
export function parentsOf(paths: readonly string[]): string[] {
  const parents = new Set<string>()
  for (const path of paths)
    for (let above = dirname(path); above !== '/'; above = dirname(above)) parents.add(above)
  return [...parents].sort((one, other) => one.length - other.length)
}
