import { pipeline, Readable } from 'node:stream'
import zlib from 'node:zlib'
import { ArchiveBroken } from './tar.ts'

export type Compression = 'zstd' | 'gzip'

/** Node has it since 22.15. */
export const hasZstd = 'createZstdCompress' in zlib

/** Its errors are the reader's. */
const nobody = () => {}

export function compressed(bytes: AsyncIterable<Buffer>, how: Compression): Readable {
  const through =
    how === 'gzip'
      ? zlib.createGzip({ level: 6 })
      : zlib.createZstdCompress({
          params: { [zlib.constants.ZSTD_c_compressionLevel]: 3, [zlib.constants.ZSTD_c_checksumFlag]: 1 },
        })
  return pipeline(Readable.from(bytes, { objectMode: false }), through, nobody)
}

/** Whichever it is, by its first bytes; an archive that is not compressed will do as well. */
export async function* decompressed(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const parts = bytes[Symbol.asyncIterator]()
  let first = Buffer.alloc(0)
  while (first.length < 4) {
    const next = await parts.next()
    if (next.done) break
    first = Buffer.concat([first, next.value])
  }
  if (first.length < 4) throw new ArchiveBroken('The archive is empty.')
  async function* whole(): AsyncGenerator<Buffer> {
    yield first
    for (;;) {
      const next = await parts.next()
      if (next.done) return
      yield next.value
    }
  }
  const isZstd = first.readUInt32BE(0) === 0x28b52ffd
  if (isZstd && !hasZstd)
    throw new ArchiveBroken(
      `The archive is compressed with zstd, which Node ${process.versions.node} cannot unpack. Use Node 22.15 or newer, or unpack it first: zstd -d FILE.`,
    )
  const through =
    first.readUInt16BE(0) === 0x1f8b ? zlib.createGunzip() : isZstd ? zlib.createZstdDecompress() : undefined
  if (!through) return yield* whole()
  try {
    yield* pipeline(Readable.from(whole(), { objectMode: false }), through, nobody)
  } catch (error) {
    if (error instanceof Error && 'code' in error && String(error.code).startsWith('Z'))
      throw new ArchiveBroken(`The archive cannot be unpacked: ${error.message}.`, { cause: error })
    throw error
  }
}
