import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import type { ChannelHost } from '../../../chat/channels/types.ts'
import type { Element } from './library.ts'
import { type Session, StanzaRefusal } from './session.ts'
import { bareOf, ns, timeOf } from './stanzas.ts'

/** A message as an archive keeps it, under the archive's own id. */
export interface Archived {
  id: string
  at: number
  message: Element
}

interface Query {
  /** whose archive: our own address, or a room's */
  of: string
  /** what came after this id, or since this time */
  after?: string | undefined
  since?: number | undefined
  /** the last so many instead */
  last?: number
  /** only with this person */
  with?: string | undefined
}

/** What the server and the rooms keep of what was said (XEP-0313). */
export interface Archives {
  page(query: Query): Promise<{ items: readonly Archived[]; isComplete: boolean }>
  /**
   * Reads what came after the place that was noted last, and notes a place only once everything before it was taken. The first
   * time nothing is read: what was said before we came is not for us.
   */
  catchUp(of: string, take: (item: Archived) => Promise<void>): Promise<void>
  /** everything up to here was taken */
  note(of: string, at: Pick<Archived, 'id' | 'at'>): void
  /** whether the stanza belongs to a page; anybody could send one that looks like it */
  takes(stanza: Element): boolean
}

const pageSize = 50
const placeSchema = z.object({ id: z.string(), at: z.number() })

export function createArchives(
  session: Session,
  memory: Pick<ChannelHost, 'recall' | 'remember'>,
  now: () => number,
): Archives {
  const { xml } = session
  const open = new Map<string, { of: string; items: Archived[] }>()
  const keyOf = (of: string) => `read:${of}`

  const formOf = (query: Query) => {
    const fields = {
      ...(query.with !== undefined && { with: query.with }),
      ...(query.since !== undefined && { start: new Date(query.since).toISOString() }),
    }
    const field = ([name, value]: [string, string]) => xml('field', { var: name }, xml('value', {}, value))
    if (Object.keys(fields).length === 0) return undefined
    return xml(
      'x',
      { xmlns: ns.form, type: 'submit' },
      xml('field', { var: 'FORM_TYPE', type: 'hidden' }, xml('value', {}, ns.mam)),
      Object.entries(fields).map(field),
    )
  }

  const page: Archives['page'] = async query => {
    const id = randomUUID()
    const found = { of: query.of, items: [] as Archived[] }
    open.set(id, found)
    try {
      const answer = await session.ask(
        'set',
        query.of === session.me ? undefined : query.of,
        xml(
          'query',
          { xmlns: ns.mam, queryid: id },
          formOf(query),
          xml(
            'set',
            { xmlns: ns.page },
            xml('max', {}, String(query.last ?? pageSize)),
            query.last !== undefined && xml('before'),
            query.after !== undefined && xml('after', {}, query.after),
          ),
        ),
      )
      const isComplete = answer.getChild('fin', ns.mam)?.attrs.complete === 'true'
      return { items: found.items, isComplete }
    } finally {
      open.delete(id)
    }
  }

  const note: Archives['note'] = (of, { id, at }) => memory.remember(keyOf(of), JSON.stringify({ id, at }))

  return {
    page,
    note,
    async catchUp(of, take) {
      const noted = memory.recall(keyOf(of))
      if (noted === undefined) {
        const { items } = await page({ of, last: 1 })
        return note(of, items.at(-1) ?? { id: '', at: now() })
      }
      let place = placeSchema.parse(JSON.parse(noted))
      // An archive that was empty then is read from its beginning.
      let query: Query = place.id === '' ? { of } : { of, after: place.id }
      for (;;) {
        let found: Awaited<ReturnType<typeof page>>
        try {
          found = await page(query)
        } catch (error) {
          // Archives forget what is old; then the time says where to go on. What is read twice is taken once.
          const isGone = error instanceof StanzaRefusal && error.condition === 'item-not-found'
          if (!isGone || query.after === undefined || query.since !== undefined) throw error
          query = { of, since: place.at }
          continue
        }
        for (const item of found.items) await take(item)
        place = found.items.at(-1) ?? place
        note(of, place)
        if (found.isComplete || found.items.length === 0) return
        query = { of, after: place.id }
      }
    },
    takes(stanza) {
      const result = stanza.getChild('result', ns.mam)
      if (!result) return false
      const query = open.get(result.attrs.queryid ?? '')
      const forwarded = result.getChild('forwarded', ns.forward)
      const message = forwarded?.getChild('message')
      const { id } = result.attrs
      if (query && bareOf(stanza.attrs.from ?? session.me) === query.of && message && id)
        query.items.push({ id, at: timeOf(forwarded) ?? now(), message })
      return true
    },
  }
}
