import type { EventAnswer } from './answers.ts'

export type Method = 'GET' | 'POST' | 'DELETE'

/** One way to reach the API. */
export interface Transport {
  /** whether a daemon answers */
  daemon: boolean
  request(method: Method, path: string, body: unknown): Promise<{ status: number; text: string }>
  /** resolves when there will be no more */
  events(
    path: string,
    onEvent: (event: EventAnswer) => void | Promise<void>,
    signal: AbortSignal,
  ): Promise<void>
  close(): Promise<void>
}
