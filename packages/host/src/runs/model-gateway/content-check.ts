import { createWorkQueue } from '../../base/keyed-queue.ts'
import { createThread, ThreadFailed } from '../../base/thread.ts'
import { contentFor, type RuledContent } from './content.ts'

type Checked = { bytes: Uint8Array; model: string } | { problem: string }

export interface ContentCheck {
  check(bytes: Uint8Array, kind: RuledContent): Promise<Checked>
  close(): Promise<void>
}

/** Larger ones take milliseconds each, in which the host would do nothing for anybody else. */
const mostBytesHere = 131_072
const limits = { limitMs: 10_000, idleMs: 10_000, memoryMb: 1024 }

/** Holds the bodies of one run against the rules in content.ts. */
export function createContentCheck(): ContentCheck {
  const queue = createWorkQueue({ all: 1 })
  const thread = createThread<{ bytes: Uint8Array; kind: RuledContent }, Checked>({
    file: new URL('./content-thread.ts', import.meta.url),
    ...limits,
  })
  return {
    async check(bytes, kind) {
      if (bytes.length <= mostBytesHere) return contentFor(bytes, kind)
      try {
        return await queue.run('', undefined, () => thread.ask({ bytes, kind }))
      } catch (error) {
        if (error instanceof ThreadFailed) return { problem: 'The body could not be checked.' }
        throw error
      }
    },
    async close() {
      await thread.close()
      await queue.stop(new Error('The run has ended.'))
    },
  }
}
