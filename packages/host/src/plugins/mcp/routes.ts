import { type Refusal, refusal } from '@hatchway/protocol'
import { z } from 'zod'
import {
  type LentServerAnswer,
  type LentServerTriedAnswer,
  lentServersAnswer,
  lentServerTriedAnswer,
  removedAnswer,
} from '../../api/answers.ts'
import { ApiError } from '../../api/failure.ts'
import { type Caller, type Route, routesOf } from '../../api/route.ts'
import type { LentServerManager, ListedServer, Tried } from './manager.ts'

const route = routesOf<LentServerManager>('services')

const named = z.object({ name: z.string() })
const wanted = z.object({ name: z.string(), settings: z.record(z.string(), z.unknown()) })

function shown(
  { name, settings, isAdded, state, tools }: ListedServer,
  { isAtHost }: Caller,
): LentServerAnswer {
  return {
    name,
    where: whereOf(settings, isAtHost),
    added: isAdded,
    groups: settings.groups ?? 'main',
    labels: settings.labels ?? {},
    up: state?.ok ?? null,
    state: state?.text ?? null,
    tools: tools ?? null,
  }
}

/** Arguments, paths and queries may hold keys; whoever is at the host may read the files anyway. */
function whereOf({ url, command = [], args = [] }: ListedServer['settings'], isAtHost: boolean): string {
  if (url !== undefined) return isAtHost ? url : new URL(url).origin
  const words = [command, args].flat()
  return isAtHost ? words.join(' ') : (words[0] ?? '')
}

const triedAnswer = ({ lending, suggestion }: Tried): LentServerTriedAnswer => ({
  tools: lending.tools.map(({ name, remoteName, title, annotations, labels }) => ({
    name: remoteName,
    lent_as: name,
    title,
    read_only: annotations.readOnlyHint === true,
    labels: { ...labels },
  })),
  problems: [...lending.problems],
  suggested: suggestion,
})

function success<T extends { ok: true }>(outcome: T | { ok: false; error: Refusal }): T {
  if (!outcome.ok) throw new ApiError(outcome.error)
  return outcome
}

/** A program is started with all of the host's rights: that is more than an admin of the console may do. */
function onlyAtHost({ isAtHost }: Caller) {
  if (isAtHost) return
  throw new ApiError(
    refusal('forbidden', 'An MCP server is added on the host: npx hatchway mcp add NAME -- COMMAND.'),
  )
}

export const lentServerRoutes: readonly Route<LentServerManager>[] = [
  route.get('/mcp', {
    summary: 'The MCP servers that are lent to agents',
    role: 'viewer',
    answer: lentServersAnswer,
    handle: (manager, { caller }) => manager.list().map(server => shown(server, caller)),
  }),
  route.post('/mcp/try', {
    summary: 'Start an MCP server once and list its tools; only on the daemon’s socket',
    role: 'admin',
    body: wanted,
    answer: lentServerTriedAnswer,
    async handle(manager, { body: { name, settings }, caller }) {
      onlyAtHost(caller)
      return triedAnswer(success(await manager.try(name, settings)))
    },
  }),
  route.post('/mcp', {
    summary: 'Lend an MCP server to agents from now on; only on the daemon’s socket',
    role: 'admin',
    body: wanted.extend({ internet: z.boolean(), private: z.boolean() }),
    answer: lentServerTriedAnswer,
    status: 201,
    async handle(manager, { body: { name, settings, ...answers }, caller }) {
      onlyAtHost(caller)
      return triedAnswer(success(await manager.add(name, settings, answers)))
    },
  }),
  route.post('/mcp/:name/test', {
    summary: 'Start it once more, or ask its address, and list its tools',
    role: 'admin',
    params: named,
    answer: lentServerTriedAnswer,
    handle: async (manager, { params }) => triedAnswer(success(await manager.test(params.name))),
  }),
  route.delete('/mcp/:name', {
    summary: 'Lend an MCP server no longer, and delete what is kept of it, keys included',
    role: 'admin',
    params: named,
    answer: removedAnswer,
    async handle(manager, { params }) {
      const { removed } = success(await manager.remove(params.name))
      return { removed }
    },
  }),
]
