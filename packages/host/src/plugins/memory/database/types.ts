import type { ErrorCode } from '@hatchway/protocol'

/** How much one group may keep. */
export interface MemoryLimits {
  perGroup: number
  /** of one memory's content, in UTF-8 */
  contentBytes: number
  /** of all keys and contents together */
  groupBytes: number
}

/** Whose memories. The folder names the file, the jid tells a group from a later one of the same folder. */
export interface MemoryOwner {
  folder: string
  jid: string
}

export type MemoryRequest =
  | { do: 'save'; key: string; content: string; category: string; at: number }
  | { do: 'recall'; query: string; category?: string | undefined; limit: number }
  | { do: 'forget'; key: string }
  | { do: 'list'; category?: string | undefined; limit: number; offset: number }

export type MemoryAnswer =
  | { ok: true; result: object }
  | {
      ok: false
      message: string
      /** a refusal; left out: it failed */
      code?: ErrorCode
      /** the file cannot be read: a person has to see to it */
      damaged?: boolean
    }

/** What the thread is told when it starts. */
export interface MemoryThreadOptions {
  directory: string
  durability: 'full' | 'process'
  limits: MemoryLimits
}

/** Requests of one group, to be carried out in their order and made durable together. */
export interface MemoryBatch {
  owner: MemoryOwner
  requests: readonly MemoryRequest[]
}
