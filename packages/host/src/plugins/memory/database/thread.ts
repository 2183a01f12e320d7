import { workerData } from 'node:worker_threads'
import { answerQuestions } from '../../../base/thread-side.ts'
import { type MemoryFile, MemoryFileDamaged, openMemoryFile } from './file.ts'
import { createMemories, type Memories } from './memories.ts'
import { Refused } from './refused.ts'
import type { MemoryAnswer, MemoryBatch, MemoryOwner, MemoryRequest, MemoryThreadOptions } from './types.ts'

/** All work on memories is done here, so that a long query keeps nobody but its own kind waiting. */
const options: MemoryThreadOptions = workerData
const keptOpen = 8

interface Open extends MemoryFile {
  owner: MemoryOwner
  memories: Memories
}
/** the one that was used last is the last */
const files = new Map<string, Open>()

function open(owner: MemoryOwner): Open {
  const name = owner.folder.toLowerCase()
  let found = files.get(name)
  files.delete(name)
  if (found && found.owner.jid !== owner.jid) {
    found.close()
    found = undefined
  }
  if (!found) {
    const file = openMemoryFile(options, owner)
    found = { ...file, owner, memories: createMemories(file, options.limits) }
  }
  files.set(name, found)
  for (const [oldest, { close }] of files) {
    if (files.size <= keptOpen) break
    files.delete(oldest)
    close()
  }
  return found
}

function carryOut(owner: MemoryOwner, requests: readonly MemoryRequest[]): MemoryAnswer[] {
  try {
    const { memories, atomically } = open(owner)
    return atomically(() =>
      requests.map(request => {
        try {
          return { ok: true, result: memories(request) }
        } catch (error) {
          if (!(error instanceof Refused)) throw error
          return { ok: false, code: error.code, message: error.message }
        }
      }),
    )
  } catch (error) {
    // Whatever it was, the next request begins with the file as it lies on the disk.
    const name = owner.folder.toLowerCase()
    files.get(name)?.close()
    files.delete(name)
    const message = error instanceof Error ? error.message : String(error)
    const damaged = error instanceof MemoryFileDamaged
    if (requests.length > 1 && !damaged) return requests.flatMap(request => carryOut(owner, [request]))
    return requests.map(() => ({ ok: false, message, damaged }))
  }
}

answerQuestions(
  ({ owner, requests }: MemoryBatch) => carryOut(owner, requests),
  () => {
    for (const { close } of files.values()) close()
  },
)
