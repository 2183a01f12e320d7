import { createHash } from 'node:crypto'
import { payloads } from '@hatchway/protocol'
import type { Evidence, EvidenceContext } from '../../commands/service-tools.ts'
import type { SecretSearch } from '../../guard/secrets/search.ts'
import { headBytes, typeOf } from '../../store/attachment-type.ts'
import { quotedPath, shownName } from './names.ts'
import { type Folder, type Taken, takeFile } from './take.ts'

/** of a text that is searched for secrets */
const searchedBytes = 1_048_576

export interface EvidenceOptions {
  folderOf(group: string): Folder
  /** of one file */
  limit: number
  /** left out: nothing is guarded */
  findSecrets?: SecretSearch['findSecrets'] | undefined
}

/** For whoever decides about a message with files: the content of each by its hash, and whether a secret is in one. */
export async function evidenceOf(
  given: unknown,
  { group, signal }: EvidenceContext,
  options: EvidenceOptions,
): Promise<Evidence | undefined> {
  const { attachments } = payloads.send_message.parse(given)
  if (!attachments) return undefined
  const files: object[] = []
  let secret: Evidence['secret']
  for (const { path, name } of attachments) {
    signal.throwIfAborted()
    const taken = await takeFile(options.folderOf(group.folder), path, options.limit)
    try {
      const { text, ...file } = await readThrough(taken)
      files.push({ path, name: shownName(name ?? taken.name), ...file })
      const [found] =
        text === undefined
          ? []
          : ((await options.findSecrets?.({ text }, { group: group.folder, signal })) ?? [])
      if (found) secret ??= { kind: found.kind, where: `the file ${quotedPath(path)}` }
    } finally {
      await taken.close()
    }
  }
  return { fields: { attachments: files }, secret }
}

export const isSearched = ({ type, bytes }: { type: string; bytes: number }) =>
  type === 'text/plain' && bytes <= searchedBytes

/** What is in it, by its hash, and as a text where it is searched. */
async function readThrough({ content, bytes }: Taken) {
  const hash = createHash('sha256')
  const parts: Buffer[] = []
  let kept = 0
  for await (const chunk of content) {
    hash.update(chunk)
    if (bytes > searchedBytes && kept >= headBytes) continue
    // The source may use its memory again.
    parts.push(Buffer.from(chunk))
    kept += chunk.length
  }
  const all = Buffer.concat(parts)
  const type = typeOf(all.subarray(0, headBytes))
  const text = isSearched({ type, bytes }) ? all.toString('utf8') : undefined
  return { bytes, type, sha256: hash.digest('hex'), text }
}
