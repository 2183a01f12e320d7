import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  type BigIntStats,
  chmodSync,
  lchownSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'

/**
 * Files outside the hatch that the host may read and write, and must not: what they hold, who owns them, and every
 * time the file system keeps of them are written down at first and compared in the end.
 */
export interface Canary {
  path: string
  /** a word that is in every file of it, and that nothing below the data directory may hold */
  secret: string
  /** a file that the attacker may link to; its count of links and time of change are its own doing */
  linked: string
  changes(): string[]
}

interface Mark {
  about: BigIntStats
  content: string
}

export function plantCanary(path: string, owner: number, secret: string): Canary {
  const command = JSON.stringify({
    version: 1,
    id: 'stolen',
    type: 'send_message',
    payload: { text: secret },
  })
  for (const directory of ['', 'drop', 'drop/below', 'empty', '.tmp'])
    mkdirSync(join(path, directory), { mode: 0o751 })
  const files = {
    'secret.txt': `${secret}\n`,
    'secret.json': command,
    'linked.json': command,
    'current_tasks.json': command,
    'drop/1700000000000-000000-aaaaaaaa.json': command,
    'drop/below/1700000000001-000000-aaaaaaaa.json': command,
    'drop/old.tmp': secret,
    '.tmp/old.tmp': secret,
  }
  for (const [name, content] of Object.entries(files)) {
    writeFileSync(join(path, name), content)
    chmodSync(join(path, name), 0o606)
  }
  symlinkSync('secret.txt', join(path, 'link'))

  const names = ['', ...readdirSync(path, { recursive: true, encoding: 'utf8' })].sort()
  const marks = new Map<string, Mark>()
  const [accessed, modified] = [new Date('2020-01-01T00:00:00Z'), new Date('2021-01-01T00:00:00Z')]
  for (const name of names) {
    lchownSync(join(path, name), owner, owner)
    const content = contentOf(join(path, name))
    // Where the time of access is older than that of the change, mounts with `relatime` show every reading.
    lutimesSync(join(path, name), accessed, modified)
    marks.set(name, { content, about: lstatSync(join(path, name), { bigint: true }) })
  }
  const linked = join(path, 'linked.json')

  return {
    path,
    secret,
    linked,
    changes() {
      const found: string[] = []
      const stats = [...marks.keys()].map(
        name => [name, lstatSync(join(path, name), { bigint: true, throwIfNoEntry: false })] as const,
      )
      for (const [name, about] of stats) {
        const mark = marks.get(name)
        if (!mark) continue
        if (!about) {
          found.push(`${name} is gone`)
          continue
        }
        for (const key of [
          'ino',
          'mode',
          'uid',
          'gid',
          'size',
          'mtimeNs',
          'atimeNs',
          'ctimeNs',
          'nlink',
        ] as const) {
          if (join(path, name) === linked && (key === 'ctimeNs' || key === 'nlink')) continue
          if (about[key] !== mark.about[key])
            found.push(`${name}: ${key} was ${mark.about[key]}, is ${about[key]}`)
        }
        if (contentOf(join(path, name)) !== mark.content) found.push(`${name}: its content has changed`)
      }
      for (const name of readdirSync(path, { recursive: true, encoding: 'utf8' })) {
        if (!marks.has(name)) found.push(`${name} is new`)
      }
      return found
    },
  }
}

function contentOf(path: string): string {
  const about = lstatSync(path)
  if (about.isSymbolicLink()) return readlinkSync(path)
  if (about.isDirectory()) return readdirSync(path).sort().join('\n')
  return createHash('sha256').update(readFileSync(path)).digest('hex')
}

/**
 * Every file below the directory that holds one of the words, but for the largest. Links are not followed. It may be
 * deeper than a path can be long, which find gets along with.
 */
export function filesWith(words: readonly string[], directory: string): string[] {
  return words.flatMap(word => {
    const look = ['-type', 'f', '-size', '-100000k', '-execdir', 'grep', '-laF', '-e', word, '{}', '+']
    const { stdout, stderr } = spawnSync('find', [directory, ...look], { encoding: 'utf8' })
    const found = stdout.split('\n').filter(Boolean)
    return [
      ...found.map(name => `${name} below ${directory} holds ${word}`),
      ...(stderr === '' ? [] : [`${directory} cannot be searched: ${stderr.slice(0, 300)}`]),
    ]
  })
}
