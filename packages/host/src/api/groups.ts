import { folderSchema, type Group, payloads, resultSchema } from '@hatchway/protocol'
import { z } from 'zod'
import { settingsOf } from '../config.ts'
import { folderContext } from '../store/contexts.ts'
import { isoOf } from '../store/entities/instant.ts'
import {
  type GroupAnswer,
  groupAnswer,
  groupLimits,
  groupsAnswer,
  newGroupRequest,
  wipedAnswer,
} from './answers.ts'
import type { Host, HostContext } from './host.ts'
import { present } from './requests.ts'
import { notFound, type Route, resultOf, routesOf, unavailable } from './route.ts'

const route = routesOf<HostContext>('groups')

const byFolder = z.object({ folder: folderSchema })

/** The registered groups, and what an operator does for one. */
export const groupRoutes: readonly Route<HostContext>[] = [
  route.get('/groups', {
    summary: 'The registered groups and what each may do',
    role: 'viewer',
    answer: groupsAnswer,
    handle({ host }) {
      const answerOf = answersOf(host)
      return host.store.groups().map(answerOf)
    },
  }),
  route.post('/groups', {
    summary: 'Register a group',
    role: 'admin',
    body: newGroupRequest,
    answer: groupAnswer,
    status: 201,
    async handle({ host }, { body: { trigger, requires_trigger, channel, ...group } }) {
      resultOf(await host.addGroup({ ...group, ...present({ trigger, requires_trigger, channel }) }))
      return answersOf(host)(registered(host, group.folder))
    },
  }),
  route.delete('/groups/:folder', {
    summary: 'Remove a group; its tasks are cancelled, its files are kept',
    role: 'admin',
    params: byFolder,
    answer: resultSchema,
    handle: async ({ host }, { params }) => resultOf(await host.removeGroup(params.folder)),
  }),
  route.post('/groups/:folder/wipe', {
    summary:
      'Remove the folder, home and worktree of a group, registered or not, and forget what it has read',
    role: 'admin',
    params: byFolder,
    answer: wipedAnswer,
    async handle({ host }, { params }) {
      if (!host.wipeGroup) throw unavailable('Only a running daemon wipes groups. Start it with hatchway up.')
      return wipedAnswer.parse(resultOf(await host.wipeGroup(params.folder)))
    },
  }),
  route.post('/groups/:folder/reset', {
    summary: 'End the session of a group’s agent; the next one begins anew',
    role: 'admin',
    params: byFolder,
    body: payloads.reset_context,
    answer: resultSchema,
    handle: async ({ host }, { params, body: payload }) =>
      resultOf(await host.perform({ type: 'reset_context', payload }, registered(host, params.folder))),
  }),
  route.post('/groups/:folder/finish', {
    summary: 'Count the scheduled run of a group as done',
    role: 'admin',
    params: byFolder,
    answer: resultSchema,
    handle: async ({ host }, { params }) =>
      resultOf(await host.perform({ type: 'finished_work', payload: {} }, registered(host, params.folder))),
  }),
]

/** What its agent does counts, as what is said in its chat does. */
const later = (said: string | null, did: number | undefined): string | null =>
  did === undefined || Date.parse(said ?? '') > did ? said : isoOf(did)

function registered(host: Host, folder: string): Group {
  const group = host.store.group(folder)
  if (!group) throw notFound(`No group has the folder ${folder}.`)
  return group
}

/** What is the same for all of them is looked up once. */
function answersOf(host: Host): (group: Group) => GroupAnswer {
  const { config, store } = host
  const { limits, agents } = config
  const opened = host.agents()
  const running = opened?.queue.running() ?? []
  const limitsOfAll = groupLimits.of({ ...limits, ...agents })
  const taints = store.taints.all().filter(({ context }) => context === folderContext)
  return group => {
    const { folder } = group
    const settings = settingsOf(config, folder)
    const mode = host.mode(folder)
    const session = running.find(run => run.group === folder)
    const taint = taints.find(row => row.group === folder)
    const activeAt = host.meter.activeAt(folder)
    return {
      ...group,
      ...(mode === undefined ? {} : { mode }),
      last_activity: later(group.last_activity, activeAt),
      sandbox: settings.sandbox ?? opened?.choice().sandbox?.name ?? agents.sandbox,
      driver: settings.driver ?? agents.driver,
      repo: settings.repo ?? null,
      mounts: settings.mounts ?? [],
      limits: limitsOfAll,
      taint: {
        corrupted: (taint?.corruptedAt ?? null) !== null,
        secret: settings.containsSecrets === true || (taint?.secretAt ?? null) !== null,
      },
      session: session ? { state: session.state, run_id: session.runId } : null,
    }
  }
}
