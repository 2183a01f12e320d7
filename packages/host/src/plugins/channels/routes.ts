import { z } from 'zod'
import { type ChannelAnswer, channelAddedAnswer, channelsAnswer, removedAnswer } from '../../api/answers.ts'
import { ApiError } from '../../api/failure.ts'
import { type Caller, type Route, routesOf } from '../../api/route.ts'
import type { PaceLimit } from '../../chat/channels/pace.ts'
import { isoOf } from '../../store/entities/instant.ts'
import type { Added, ChannelManager, ListedChannel } from './manager.ts'

const route = routesOf<ChannelManager>('chat')

const perSecond = (limit: PaceLimit | undefined): number | null =>
  limit ? (1000 * limit.messages) / limit.perMs : null

const named = z.object({ name: z.string() })

const shown = (
  { kind, isInstalled, isAdded, status, problem }: ListedChannel,
  role: Caller['role'],
): ChannelAnswer => ({
  name: kind.name,
  title: kind.title,
  installed: isInstalled,
  added: isAdded,
  connected: status?.isConnected ?? null,
  since: status ? isoOf(status.since) : null,
  last_error: status?.lastError ?? null,
  limited_until: status?.limitedUntil === undefined ? null : isoOf(status.limitedUntil),
  per_second: perSecond(status?.pace?.limit),
  waiting: status?.pace?.waiting ?? 0,
  problem: problem ?? null,
  // Whoever confirms it has their own account linked to the assistant.
  confirm: (role === 'admin' ? status?.confirm : undefined) ?? null,
  questions: kind.questions.map(({ key, question, isSecret = false }) => ({
    key,
    question,
    secret: isSecret,
  })),
  next: [...kind.next],
})

const success = (outcome: Added) => {
  if (!outcome.ok) throw new ApiError(outcome.error)
  return { as: outcome.as, next: [...outcome.next] }
}

export const channelRoutes: readonly Route<ChannelManager>[] = [
  route.get('/channels', {
    summary: 'The chat apps there are, and how those are that were added',
    role: 'viewer',
    answer: channelsAnswer,
    handle: (manager, { caller }) => manager.list().map(channel => shown(channel, caller.role)),
  }),
  route.post('/channels', {
    summary: 'Add a chat app: its settings are tried, kept and used from now on',
    role: 'admin',
    body: z.object({ kind: z.string(), settings: z.record(z.string(), z.unknown()) }),
    answer: channelAddedAnswer,
    status: 201,
    handle: async (manager, { body: { kind, settings } }) => success(await manager.add(kind, settings)),
  }),
  route.post('/channels/:name/test', {
    summary: 'Ask the platform whether it lets us in',
    role: 'admin',
    params: named,
    answer: channelAddedAnswer,
    handle: async (manager, { params }) => success(await manager.test(params.name)),
  }),
  route.delete('/channels/:name', {
    summary: 'Remove a chat app and what is kept of it; its groups stay',
    role: 'admin',
    params: named,
    answer: removedAnswer,
    handle: async (manager, { params }) => ({ removed: await manager.remove(params.name) }),
  }),
]
