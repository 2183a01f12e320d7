import { folderSchema, resultSchema } from '@hatchway/protocol'
import { z } from 'zod'
import { knownChats } from '../chat/approvals/lookalikes.ts'
import { pairingNotes } from '../chat/pairing-notes.ts'
import { pairing, pairingsAnswer } from './answers.ts'
import type { HostContext } from './host.ts'
import { type Route, resultOf, routesOf, unavailable } from './route.ts'

const route = routesOf<HostContext>('chat')

const which = z.object({ which: z.string().min(1).max(1000) })
const daemonOnly = () => unavailable('Only a running daemon lets chats in. Start it with hatchway up.')

/** Chats that nobody has registered, whose people have asked to be let in. */
export const pairingRoutes: readonly Route<HostContext>[] = [
  route.get('/pairings', {
    summary: 'Chats that asked to be let in, oldest first',
    role: 'viewer',
    answer: pairingsAnswer,
    handle({ host: { store } }) {
      const chats = knownChats(store.groups())
      return store.chats.pairings().map(row => ({ ...pairing.of(row), notes: pairingNotes(row, chats) }))
    },
  }),
  route.post('/pairings/:which/approve', {
    summary: 'Let a chat in: a group is registered for it',
    role: 'admin',
    params: which,
    body: z.strictObject({
      folder: folderSchema,
      name: z.string().min(1).max(256).optional(),
      trigger: z.string().min(1).max(128).optional(),
      requires_trigger: z.boolean().optional(),
    }),
    answer: resultSchema,
    async handle({ host: { chats } }, { params, body: { requires_trigger, ...terms }, caller }) {
      if (!chats) throw daemonOnly()
      return resultOf(
        await chats.pairing.approve(
          params.which,
          { ...terms, requiresTrigger: requires_trigger },
          caller.name,
        ),
      )
    },
  }),
  route.post('/pairings/:which/deny', {
    summary: 'Keep a chat out: nobody there is heard, or can ask again',
    role: 'admin',
    params: which,
    answer: resultSchema,
    handle({ host: { chats } }, { params, caller }) {
      if (!chats) throw daemonOnly()
      return resultOf(chats.pairing.deny(params.which, caller.name))
    },
  }),
  route.delete('/pairings/:which', {
    summary: 'Forget that a chat asked: it may ask again',
    role: 'admin',
    params: which,
    answer: resultSchema,
    handle({ host: { chats } }, { params }) {
      if (!chats) throw daemonOnly()
      return resultOf(chats.pairing.forget(params.which))
    },
  }),
]
