/**
 * The archive's form: POSIX tar, as any `tar` reads it. The reader knows regular files, directories, symbolic links and
 * the extended headers that the writer makes, and refuses everything else: it reads what strangers may have made.
 */
type TarKind = 'file' | 'directory' | 'link'

export interface TarEntry {
  path: string
  kind: TarKind
  mode: number
  size: number
  /** in milliseconds; a fraction is kept */
  mtimeMs: number
  /** where a link leads; empty for all else */
  target: string
}

export class ArchiveBroken extends Error {
  override name = 'ArchiveBroken'
}

const block = 512
const types = { file: '0', directory: '5', link: '2' } as const
/** names, and nothing else, are this long; a manifest of millions of files is a file */
const longestHeader = 65_536
const largestOctal = 8 ** 11 - 1

export const padding = (size: number): Buffer => Buffer.alloc((block - (size % block)) % block)
export const tarEnd = Buffer.alloc(2 * block)

/** What stands before the content. */
export function tarHeader(entry: TarEntry): Buffer {
  const records = Object.entries({
    // The fields of a plain header are short, and whole seconds.
    path: entry.path,
    linkpath: entry.target,
    size: entry.size > largestOctal ? String(entry.size) : '',
    mtime: (entry.mtimeMs / 1000).toFixed(6),
  })
    .filter(([, value]) => value !== '')
    .map(([key, value]) => record(key, value))
  const extended = Buffer.concat(records)
  return Buffer.concat([
    plainHeader({ ...entry, path: 'PaxHeader', mode: 0o600, size: extended.length, target: '' }, 'x'),
    extended,
    padding(extended.length),
    plainHeader(entry, types[entry.kind]),
  ])
}

/** `length key=value\n`, where the length counts itself. */
function record(key: string, value: string): Buffer {
  const rest = Buffer.byteLength(` ${key}=${value}\n`)
  let length = rest + String(rest).length
  if (String(length).length !== String(rest).length) length = rest + String(length).length
  return Buffer.from(`${length} ${key}=${value}\n`)
}

function plainHeader(entry: TarEntry, type: string): Buffer {
  const bytes = Buffer.alloc(block)
  const octal = (value: number, at: number, length: number) =>
    bytes.write(
      `${Math.floor(value)
        .toString(8)
        .padStart(length - 1, '0')}\0`,
      at,
    )
  bytes.write(entry.path, 0, 100)
  octal(entry.mode & 0o777, 100, 8)
  octal(0, 108, 8)
  octal(0, 116, 8)
  octal(entry.size > largestOctal ? 0 : entry.size, 124, 12)
  octal(Math.max(0, entry.mtimeMs / 1000), 136, 12)
  bytes.write(type, 156)
  bytes.write(entry.target, 157, 100)
  bytes.write('ustar\x0000', 257)
  octal(sumOf(bytes), 148, 7)
  bytes.write(' ', 155)
  return bytes
}

function sumOf(header: Buffer): number {
  let sum = 0
  for (const [at, byte] of header.entries()) sum += at >= 148 && at < 156 ? 32 : byte
  return sum
}

/** Goes through an archive; `content` has to be read, or is skipped, before the next entry comes. */
export async function* readTar(
  bytes: AsyncIterable<Buffer>,
): AsyncGenerator<{ entry: TarEntry; content: AsyncIterable<Buffer> }> {
  const source = createSource(bytes)
  let extended: Map<string, string> | undefined
  for (;;) {
    const header = await source.take(block)
    if (header.every(byte => byte === 0)) {
      // Two empty blocks end it. Whatever follows them is nothing of ours.
      if (!(await source.take(block)).every(byte => byte === 0)) throw broken('has a damaged end')
      return
    }
    if (octalIn(header, 148, 8) !== sumOf(header)) throw broken('has a damaged header')
    const type = String.fromCharCode(header[156] ?? 0)
    const size = octalIn(header, 124, 12)
    if (type === 'x') {
      if (size > longestHeader || extended) throw broken('has a header that is not ours')
      extended = recordsIn(await source.take(size))
      await source.skip(padding(size).length)
      continue
    }
    const kind = (Object.keys(types) as TarKind[]).find(name => types[name] === type)
    if (kind === undefined) throw broken('holds something else than files, directories and links')
    const entry: TarEntry = {
      kind,
      path: extended?.get('path') ?? textIn(header, 0, 100),
      mode: octalIn(header, 100, 8) & 0o777,
      size: numberIn(extended, 'size') ?? size,
      mtimeMs: (numberIn(extended, 'mtime') ?? octalIn(header, 136, 12)) * 1000,
      target: extended?.get('linkpath') ?? textIn(header, 157, 100),
    }
    extended = undefined
    if (kind !== 'file' && entry.size !== 0) throw broken('has a directory or a link with content')
    if (!Number.isSafeInteger(entry.size)) throw broken('has an entry of no size')
    const content = contentOf(source, entry.size)
    yield { entry, content }
    for await (const _ of content);
    await source.skip(padding(entry.size).length)
  }
}

async function* contentOf(source: Source, size: number): AsyncGenerator<Buffer> {
  for (let left = size; left > 0; ) {
    const part = await source.some(left)
    left -= part.length
    yield part
  }
}

interface Source {
  take(length: number): Promise<Buffer>
  /** at least one byte, at most so many */
  some(most: number): Promise<Buffer>
  skip(length: number): Promise<void>
}

function createSource(bytes: AsyncIterable<Buffer>): Source {
  const parts = bytes[Symbol.asyncIterator]()
  let rest: Buffer = Buffer.alloc(0)
  const some = async (most: number): Promise<Buffer> => {
    while (rest.length === 0) {
      const next = await parts.next()
      if (next.done) throw broken('ends before its end')
      rest = next.value
    }
    const part = rest.subarray(0, most)
    rest = rest.subarray(part.length)
    return part
  }
  const take = async (length: number): Promise<Buffer> => {
    const found: Buffer[] = []
    for (let left = length; left > 0; ) {
      const part = await some(left)
      left -= part.length
      found.push(part)
    }
    return Buffer.concat(found)
  }
  return { take, some, skip: async length => void (await take(length)) }
}

const broken = (what: string) => new ArchiveBroken(`The archive ${what}.`)

const textIn = (header: Buffer, at: number, length: number): string =>
  (header.toString('utf8', at, at + length).split('\0')[0] ?? '').trim()

function octalIn(header: Buffer, at: number, length: number): number {
  const text = textIn(header, at, length)
  if (!/^[0-7]{0,12}$/.test(text)) throw broken('has a damaged header')
  return Number.parseInt(text || '0', 8)
}

function numberIn(records: ReadonlyMap<string, string> | undefined, key: string): number | undefined {
  const text = records?.get(key)
  if (text === undefined) return undefined
  if (!/^\d{1,15}(\.\d{1,9})?$/.test(text)) throw broken('has a damaged header')
  return Number(text)
}

function recordsIn(bytes: Buffer): Map<string, string> {
  const records = new Map<string, string>()
  for (let at = 0; at < bytes.length; ) {
    const space = bytes.indexOf(32, at)
    const length = Number(bytes.toString('latin1', at, space))
    const line = bytes.toString('utf8', space + 1, at + length - 1)
    const equals = line.indexOf('=')
    const isWhole = Number.isInteger(length) && length > 0 && bytes[at + length - 1] === 10 && equals > 0
    if (space < 0 || !isWhole) throw broken('has a damaged header')
    records.set(line.slice(0, equals), line.slice(equals + 1))
    at += length
  }
  return records
}
