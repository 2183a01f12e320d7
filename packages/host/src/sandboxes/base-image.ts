import { createHash } from 'node:crypto'
import { type HostFiles, parentsOf } from './host-files.ts'

/**
 * The image that is used when none is given: an empty shell of directories and links, a few kilobytes, over which the
 * host's own programs are mounted read-only. It is made on this machine in a moment, needs no network, and never
 * falls behind the host's libraries.
 */
export interface BaseImage {
  /** names what is in it: another layout is another image */
  name: string
  archive: Buffer
}

const block = 512

export function baseImage(files: Pick<HostFiles, 'directories' | 'links' | 'mounts'>): BaseImage {
  const targets = files.mounts.map(({ to }) => to)
  const directories = new Set([
    ...files.directories,
    ...parentsOf([...targets, '/home/agent/.', '/opt/hatchway/.', '/run/hatchway/.', '/workspace/extra/.']),
    ...['/proc', '/sys', '/dev', '/sbin'],
    ...files.mounts.filter(({ to }) => !to.startsWith('/etc/') && to !== '/sbin').map(({ to }) => to),
  ])
  const entries = [
    ...[...directories].map(path => header(`${path.slice(1)}/`, '5', path === '/tmp' ? 0o1777 : 0o755, '')),
    // Docker lays its first process into /sbin, which therefore cannot lead into the host's read-only /usr.
    ...files.links
      .filter(({ at }) => at !== '/sbin')
      .map(({ at, to }) => header(at.slice(1), '2', 0o777, to)),
    Buffer.alloc(2 * block),
  ]
  const archive = Buffer.concat(entries)
  const name = `hatchway-base:${createHash('sha256').update(archive).digest('hex').slice(0, 16)}`
  return { name, archive }
}

/** One entry of a tar archive, owned by root and dated 1970, so that the same content has the same name. */
function header(path: string, type: '2' | '5', mode: number, link: string): Buffer {
  const bytes = Buffer.alloc(block)
  const octal = (value: number, length: number) => `${value.toString(8).padStart(length - 1, '0')}\0`
  bytes.write(path, 0, 100)
  bytes.write(octal(mode, 8), 100)
  bytes.write(octal(0, 8), 108)
  bytes.write(octal(0, 8), 116)
  bytes.write(octal(0, 12), 124)
  bytes.write(octal(0, 12), 136)
  bytes.write(' '.repeat(8), 148)
  bytes.write(type, 156)
  bytes.write(link, 157, 100)
  bytes.write('ustar\x0000', 257)
  let sum = 0
  for (const byte of bytes) sum += byte
  bytes.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return bytes
}
