import type { Attachment } from '@hatchway/host/api-types'
import { useSyncExternalStore } from 'react'
import { csrfHeader, failureOf } from '../../host/ask.ts'
import { sizeOf } from '../../parts/figures.ts'

/**
 * What is chosen to be sent, in each chat. It goes to the host at once, and with the message only by its number.
 */
export interface Chosen {
  id: string
  name: string
  bytes: number
  /** of a picture, to be shown before it is sent */
  preview: string | undefined
  /** 0 to 1; undefined: it is there, or failed */
  progress: number | undefined
  sent: Attachment | undefined
  error: string | undefined
}

const atMost = 10
export const pictures: ReadonlySet<string> = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp'])

let chosen: ReadonlyMap<string, readonly Chosen[]> = new Map()
const none: readonly Chosen[] = []
const requests = new Map<string, XMLHttpRequest>()
const watchers = new Set<() => void>()

function become(jid: string, next: readonly Chosen[]): void {
  chosen = new Map([...chosen, [jid, next]])
  for (const heard of watchers) heard()
}

const subscribe = (heard: () => void) => {
  watchers.add(heard)
  return () => watchers.delete(heard)
}
const chosenIn = (jid: string | undefined): readonly Chosen[] => chosen.get(jid ?? '') ?? none
export const useChosen = (jid: string | undefined): readonly Chosen[] =>
  useSyncExternalStore(subscribe, () => chosenIn(jid))

const settle = (jid: string, id: string, changes: Partial<Chosen>) =>
  become(
    jid,
    chosenIn(jid).map(each => (each.id === id ? { ...each, ...changes } : each)),
  )

export function remove(jid: string, { id, preview }: Chosen): void {
  requests.get(id)?.abort()
  requests.delete(id)
  if (preview !== undefined) URL.revokeObjectURL(preview)
  become(
    jid,
    chosenIn(jid).filter(each => each.id !== id),
  )
}

function add(jid: string, file: File, largest: number): void {
  const id = crypto.randomUUID()
  const isTooLarge = file.size > largest
  become(jid, [
    ...chosenIn(jid),
    {
      id,
      name: file.name,
      bytes: file.size,
      preview: pictures.has(file.type) ? URL.createObjectURL(file) : undefined,
      progress: isTooLarge ? undefined : 0,
      sent: undefined,
      error: isTooLarge ? `It is larger than the ${sizeOf(largest)} that can be sent.` : undefined,
    },
  ])
  if (isTooLarge) return
  const fail = (error: string) => settle(jid, id, { progress: undefined, error })
  // Only this kind of request tells how far it has come.
  const request = new XMLHttpRequest()
  requests.set(id, request)
  request.upload.addEventListener('progress', ({ loaded, total }) =>
    settle(jid, id, { progress: total > 0 ? loaded / total : 1 }),
  )
  request.addEventListener('loadend', () => requests.delete(id))
  request.addEventListener('load', () => {
    const answer = parsed(request.responseText)
    if (request.status !== 201) return fail(failureOf(request.status, answer).message)
    settle(jid, id, { progress: undefined, sent: answer as Attachment })
  })
  request.addEventListener('error', () => fail('It could not be sent to the host.'))
  request.open('POST', `/api/chats/${encodeURIComponent(jid)}/files?name=${encodeURIComponent(file.name)}`)
  request.setRequestHeader('content-type', 'application/octet-stream')
  for (const [name, value] of Object.entries(csrfHeader())) request.setRequestHeader(name, value)
  request.send(file)
}

/** What is wrong with that, if anything. */
export function chooseFiles(jid: string, files: Iterable<File>, largest: number): string {
  const wanted = [...files]
  const left = Math.max(0, atMost - chosenIn(jid).length)
  for (const file of wanted.slice(0, left)) add(jid, file, largest)
  return wanted.length > left ? `A message may have ${atMost} files.` : ''
}

/** Takes them out, to be said. */
export function takeChosen(jid: string): Attachment[] {
  const taken = chosenIn(jid)
  for (const { preview } of taken) if (preview !== undefined) URL.revokeObjectURL(preview)
  become(jid, none)
  return taken.flatMap(({ sent }) => sent ?? [])
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
