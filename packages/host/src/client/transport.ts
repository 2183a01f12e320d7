import type { Readable } from 'node:stream'

export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE'

/** One way to reach the API. */
export interface Transport {
  /** whether a daemon answers */
  daemon: boolean
  request(method: Method, path: string, body: unknown): Promise<{ status: number; text: string }>
  /** sends a file as it is read */
  upload(path: string, content: Readable): Promise<{ status: number; text: string }>
  /** an answer that is a file, as it comes */
  download(path: string): Promise<Readable>
  /** the lines of an answer as they come; resolves when there will be no more */
  lines(path: string, onLine: (line: string) => void | Promise<void>, signal: AbortSignal): Promise<void>
  close(): Promise<void>
}
