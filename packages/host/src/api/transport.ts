export type Method = 'GET' | 'POST' | 'DELETE'

/** One way to reach the API. */
export interface Transport {
  /** whether a daemon answers */
  daemon: boolean
  request(method: Method, path: string, body: unknown): Promise<{ status: number; text: string }>
  /** the lines of an answer as they come; resolves when there will be no more */
  lines(path: string, onLine: (line: string) => void | Promise<void>, signal: AbortSignal): Promise<void>
  close(): Promise<void>
}
