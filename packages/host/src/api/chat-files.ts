import { Readable } from 'node:stream'
import { type Group, refusal } from '@hatchway/protocol'
import { z } from 'zod'
import type { Attachments } from '../chat/attachments/attachments.ts'
import { ServiceRefusal } from '../services/define.ts'
import { inlineTypes, unknownType } from '../store/attachment-type.ts'
import { chatJid, fileAnswer } from './chat-answers.ts'
import { type ChatContext, writableChat } from './chat-context.ts'
import { ApiError } from './failure.ts'
import { notFound, type Route, routesOf } from './route.ts'

const route = routesOf<ChatContext>('chats')

/**
 * Files to and from the chats. What somebody sent may be anything and is called whatever they like: only pictures are
 * given a type that a browser shows, everything else is something to be saved, and nothing is ever run.
 */
const uploadQuery = z.object({ name: z.string().min(1).max(1000) })

const fileHeaders = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "sandbox; default-src 'none'",
  'cache-control': 'private, max-age=3600',
}

export const fileRoutes: readonly Route<ChatContext>[] = [
  route.post('/chats/:jid/files', {
    summary: 'Send a file to a chat, to go along with a message',
    role: 'approver',
    params: z.object({ jid: chatJid }),
    query: uploadQuery,
    takes: 'application/octet-stream',
    answer: fileAnswer,
    status: 201,
    handle(context, { params, query: { name }, request }) {
      const group = writableChat(context, params.jid)
      const here = present(context.chats.files)
      const announced = Number(request.req.header('content-length') ?? 0)
      if (announced > here.limit) throw new ApiError(tooLarge(here.limit))
      return answering(() => here.receive(group, name, contentOf(request.req.raw)))
    },
  }),
  route.get('/files/:id', {
    summary: 'A file that went along with a message',
    role: 'viewer',
    params: z.object({ id: z.string().min(1).max(128) }),
    answer: z.string(),
    gives: unknownType,
    async handle({ chats }, { params, request }) {
      const opened = await present(chats.files).open(params.id)
      if (!opened) throw notFound('This file is no longer kept.')
      const { file, handle } = opened
      const isInline = inlineTypes.has(file.type)
      // Nobody reads, and so nobody ends, a stream that was only asked about.
      const isWanted = request.req.method === 'GET'
      if (!isWanted) await handle.close()
      return new Response(isWanted ? Readable.toWeb(handle.createReadStream()) : null, {
        headers: {
          ...fileHeaders,
          'content-type': isInline ? file.type : unknownType,
          'content-length': String(file.bytes),
          'content-disposition': disposition(isInline ? 'inline' : 'attachment', file.name),
        },
      })
    },
  }),
]

/** Puts what is said where the agent finds it. */
export const giveFiles = (files: Attachments | undefined, group: Group, ids: readonly string[]) =>
  answering(() => present(files).give(group, ids))

function present(files: Attachments | undefined): Attachments {
  if (files) return files
  throw new ApiError(refusal('unavailable', 'This host takes no files.'))
}

const tooLarge = (limit: number) => refusal('too_large', `A file may have ${limit} bytes.`)

async function answering<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw error instanceof ServiceRefusal ? new ApiError(refusal(error.code, error.message)) : error
  }
}

/** A browser may be closed in the middle: that is no failure of ours. */
async function* contentOf({ body }: Request): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of body ?? []) yield chunk
  } catch (error) {
    throw new ServiceRefusal(
      'interrupted',
      `The file did not come whole (${error instanceof Error ? error.name : '?'}).`,
    )
  }
}

/** A name in a header: in ASCII for whoever reads no more, and as it is, with every other character spelled out. */
function disposition(kind: 'inline' | 'attachment', name: string): string {
  const plain = name.replace(/[^A-Za-z0-9._ -]/g, '_')
  const spelled = encodeURIComponent(name).replace(
    /['()*!]/g,
    each => `%${each.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return `${kind}; filename="${plain}"; filename*=UTF-8''${spelled}`
}
