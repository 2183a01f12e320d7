import { readdirSync } from 'node:fs'
import { folderSchema, resultSchema } from '@hatchway/protocol'
import { z } from 'zod'
import { layoutOf } from '../base/layout.ts'
import { errorContentAnswer, errorsAnswer } from './answers.ts'
import type { Host, HostContext } from './host.ts'
import { readRefused } from './refused-content.ts'
import { flag, largestPage, whole } from './requests.ts'
import { notFound, type Route, resultOf, routesOf } from './route.ts'

const route = routesOf<HostContext>('errors')

const errorsQuery = z.object({
  group: folderSchema.optional(),
  code: z.string().optional(),
  limit: whole(1, largestPage).optional(),
})
const byId = z.object({ id: z.string().min(1).max(256) })

/** What was refused, why, and having it handled again. */
export const errorRoutes: readonly Route<HostContext>[] = [
  route.get('/errors', {
    summary: 'Refused files, the newest, oldest first',
    role: 'viewer',
    query: errorsQuery,
    answer: errorsAnswer,
    handle: ({ host }, { query: { group, code, limit = largestPage } }) =>
      host.quarantine
        .list({ newest: limit, ...(group === undefined ? {} : { inbox: group }) })
        .filter(entry => code === undefined || entry.code === code),
  }),
  route.get('/errors/:id', {
    summary: 'One refused file; its beginning only where it is asked for',
    role: 'viewer',
    params: byId,
    query: z.object({ content: flag.optional() }),
    answer: errorContentAnswer,
    handle({ host }, { params: { id }, query: { content = false } }) {
      const entry = host.quarantine.find(id)
      if (!entry) throw notFound(`No refused file has the id ${id}.`)
      if (!content) return entry
      const path = host.quarantine.pathOf(entry)
      return { ...entry, content: entry.kept ? readRefused(path, host.config.limits.fileBytes) : null }
    },
  }),
  route.post('/errors/:id/replay', {
    summary: 'Have a refused file handled again',
    role: 'admin',
    params: byId,
    answer: resultSchema,
    async handle({ host }, { params }) {
      const result = resultOf(await host.replay(params.id))
      host.changes.note('errors')
      return result
    },
  }),
]

const countedForMs = 2000
const counted = new WeakMap<Host['quarantine'], { count: number; until: number }>()

/** How many there are. Looking takes a while where there are many, so the number may be two seconds old. */
export function countRefused({ quarantine, config }: Pick<Host, 'quarantine' | 'config'>): number {
  const known = counted.get(quarantine)
  if (known && performance.now() < known.until) return known.count
  const names = readdirSync(layoutOf(config.data).errors)
  const count = names.reduce((sum, name) => sum + Number(name.endsWith('.error.json')), 0)
  counted.set(quarantine, { count, until: performance.now() + countedForMs })
  return count
}
