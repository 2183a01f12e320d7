import { z } from 'zod'
import { roughSize } from '../../services/answer.ts'
import { mostItems } from './bounds.ts'

/**
 * An answer that is larger than may be told comes as files in the group's folder: the largest parts first, until the rest
 * fits. Each part is replaced by a line that says where it is.
 */
export interface OverflowOptions {
  limitBytes: number
  /** what the files are called, before their ending */
  name: string
  /** where the agent finds it */
  giveFile(name: string, content: Buffer): Promise<string>
}

type Answer = Record<string, unknown>

const block = z.looseObject({
  type: z.string(),
  text: z.string().optional(),
  data: z.string().optional(),
  mimeType: z.string().optional(),
  resource: z
    .looseObject({
      text: z.string().optional(),
      blob: z.string().optional(),
      mimeType: z.string().optional(),
    })
    .optional(),
})
type Block = z.output<typeof block>

/** Of one answer: an agent that needs more asks for less at once. */
const mostFiles = 50
/** what the line in place of a part takes, at most */
const spareBytes = 1024

export async function withinLimit(answer: Answer, options: OverflowOptions): Promise<Answer> {
  // The session lets no such answer through; here each item is parsed, and must not be if one comes another way.
  if (Array.isArray(answer.content) && answer.content.length > mostItems) return answer
  // Writing what is nested too deeply would end in a stack overflow; it is refused later.
  if (!Array.isArray(answer.content) || roughSize(answer, Number.POSITIVE_INFINITY) === 'too deep')
    return answer
  const size = sizeOf(answer)
  if (size <= options.limitBytes) return answer
  const content: unknown[] = [...answer.content]
  const rest: Answer = { ...answer, content }
  let left = size
  let count = 0
  const put = async (what: string, ending: string, bytes: Buffer): Promise<Block> => {
    const path = await options.giveFile(`${options.name}${count++ === 0 ? '' : `-${count}`}.${ending}`, bytes)
    const text = `${what} is too large to be shown here. All of it (${bytes.length} bytes) is in the file ${path}.`
    return { type: 'text', text }
  }

  const structured = sizeOf(answer.structuredContent)
  if (structured > options.limitBytes / 2) {
    const json = Buffer.from(JSON.stringify(answer.structuredContent))
    delete rest.structuredContent
    content.push(await put('The structured answer', 'json', json))
    left += spareBytes - structured
  }
  const bySize = content
    .map((value, index) => ({ index, size: sizeOf(value), parsed: block.safeParse(value) }))
    .toSorted((a, b) => b.size - a.size)
  for (const { index, size, parsed } of bySize) {
    if (left <= options.limitBytes || count >= mostFiles || size <= spareBytes) break
    const part = parsed.success ? fileOf(parsed.data) : undefined
    if (!part) continue
    content[index] = await put(part.what, part.ending, part.bytes)
    left += spareBytes - size
  }
  return rest
}

interface Part {
  what: string
  ending: string
  bytes: Buffer
}

function fileOf({ type, text, data, mimeType, resource }: Block): Part | undefined {
  if (type === 'text' && text !== undefined)
    return { what: 'This text', ending: 'txt', bytes: Buffer.from(text) }
  if ((type === 'image' || type === 'audio') && data !== undefined)
    return {
      what: type === 'image' ? 'This image' : 'This recording',
      ending: endingOf(mimeType),
      bytes: Buffer.from(data, 'base64'),
    }
  if (type !== 'resource' || !resource) return undefined
  if (resource.blob !== undefined)
    return {
      what: 'This resource',
      ending: endingOf(resource.mimeType),
      bytes: Buffer.from(resource.blob, 'base64'),
    }
  return resource.text === undefined
    ? undefined
    : { what: 'This resource', ending: 'txt', bytes: Buffer.from(resource.text) }
}

const endings: Readonly<Record<string, string>> = {
  'image/jpeg': 'jpg',
  'image/svg+xml': 'svg',
  'text/plain': 'txt',
  'audio/mpeg': 'mp3',
}

/** What the server says of it, as far as that is an ending. */
const endingOf = (mimeType = ''): string =>
  endings[mimeType] ?? /^[a-z]+\/([a-z0-9]{1,8})$/.exec(mimeType)?.[1] ?? 'bin'

const sizeOf = (value: unknown): number =>
  value === undefined ? 0 : Buffer.byteLength(JSON.stringify(value) ?? '')
