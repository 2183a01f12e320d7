import { read as readInto } from 'node:fs'

/** What lies at a place of an open file; less where it ends. */
export const read = (fd: number, position: number, length: number): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const buffer = Buffer.allocUnsafe(length)
    readInto(fd, buffer, 0, length, position, (error, bytes) =>
      error ? reject(error) : resolve(buffer.subarray(0, bytes)),
    )
  })
