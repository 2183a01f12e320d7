import { existsSync, lstatSync, renameSync, rmdirSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { type Group, type Outcome, type Payload, payloads, type Task } from '@hatchway/protocol'
import { errorCode, openDirectory, post } from '@hatchway/spool'
import { z } from 'zod'
import { ownedDirectory } from '../../base/layout.ts'
import { done, type Refused, refused } from '../../base/outcome.ts'
import type { Taint } from '../../base/taint.ts'
import type { Effect } from '../../commands/effects.ts'
import { nextRun } from '../../commands/schedule.ts'
import type { Work } from '../../commands/service-tools.ts'
import { newTask, tooManyTasks } from '../../commands/tasks.ts'
import type { BuiltInHost, KernelTransaction } from '../../plugin-api/types.ts'
import { ServiceRefusal } from '../../services/define.ts'
import { folderContext, nameContext, taskContext } from '../../store/contexts.ts'
import { periodicMs } from './command.ts'
import { folderOf } from './folder-name.ts'
import type { PeriodicTable } from './table.ts'

/**
 * Agents that are made together with the task that wakes them: a group, its folder with instructions, its chat and the
 * task. The instructions are laid down first, then everything else is one commit; if that does not come about, what
 * was laid down goes again. Asked once more under the same name, it changes what is there, also after a crash halfway.
 */
export interface PeriodicAgents {
  /** `by`: the main group that asks; undefined: an operator. `seen`: what its context had read. */
  create(payload: Payload<'create_periodic_agent'>, by: string | undefined, seen?: Taint): Promise<Outcome>
  work: Work
}

/** What was laid down for an agent, before anybody knows of it. */
interface Laid {
  /** why it could not be, if so */
  keep(): string | undefined
  undo(): void
}

/** what the command's context had read, as it is kept until the work is done */
const inputSchema = payloads.create_periodic_agent.extend({
  seen: z.object({ corrupted: z.boolean(), secret: z.boolean() }).optional(),
})
const nothing: Taint = { corrupted: false, secret: false }
const instructionsFile = 'CLAUDE.md'
const unfinishedFile = '.CLAUDE.md.new'

export function createPeriodicAgents(
  host: Pick<
    BuiltInHost,
    'timezone' | 'limits' | 'layout' | 'owners' | 'group' | 'groups' | 'transaction' | 'now'
  >,
  table: PeriodicTable,
): PeriodicAgents {
  const { timezone, limits, layout, owners, now } = host

  /** Written under another name, and given its own once the rest has come about. */
  const layDown = (folder: string, instructions: string | undefined): Laid | Refused => {
    const directory = join(layout.groups, folder)
    const isNew = lstatSync(directory, { throwIfNoEntry: false }) === undefined
    const inDirectory = (work: (path: string) => void) => {
      const handle = openDirectory(directory)
      if (typeof handle === 'string') return
      try {
        work(handle.path)
      } catch (error) {
        if (errorCode(error) !== 'ENOENT') throw error
      } finally {
        handle.close()
      }
    }
    const undo = () => {
      inDirectory(path => unlinkSync(join(path, unfinishedFile)))
      if (isNew) rmdirSync(directory)
    }
    try {
      const owner = owners(folder)
      ownedDirectory(directory, owner)
      if (instructions !== undefined) {
        post(directory, instructions, { name: unfinishedFile, staging: layout.staging, owner })
      }
    } catch (error) {
      const code = errorCode(error)
      if (isNew && existsSync(directory)) undo()
      return refused('internal', `The folder of ${folder} could not be made (${code}).`)
    }
    return {
      undo,
      keep() {
        if (instructions === undefined) return undefined
        try {
          inDirectory(path => renameSync(join(path, unfinishedFile), join(path, instructionsFile)))
        } catch (error) {
          inDirectory(path => unlinkSync(join(path, unfinishedFile)))
          return errorCode(error)
        }
        return undefined
      },
    }
  }

  /** The group of the agent, made or changed to what it is to be. */
  const placeGroup = (
    wanted: Pick<Group, 'folder' | 'jid' | 'name'>,
    group: Group | undefined,
    by: Group | undefined,
    at: Date,
    transaction: KernelTransaction,
    effect: (effect: Effect) => void,
  ): void => {
    if (group?.jid === wanted.jid && group.name === wanted.name) return
    if (group) transaction.updateGroup({ ...group, ...wanted })
    else {
      transaction.insertGroup({
        ...wanted,
        main: false,
        dialect: by?.dialect ?? 'hatchway',
        trigger: null,
        requires_trigger: false,
        channel: null,
        added_at: at.toISOString(),
        last_activity: null,
      })
      effect({ kind: 'group_added', folder: wanted.folder })
    }
    effect({ kind: 'groups_changed' })
  }

  /** Why it cannot be made, in this chat and folder. */
  const conflictOf = (chat: string, folder: string, isKnown: boolean, transaction: KernelTransaction) => {
    const chatOwner = transaction.groupByJid(chat)
    if (chatOwner && chatOwner.folder !== folder) {
      return refused('conflict', 'Another group has this chat already. Choose another, or leave it out.')
    }
    return !isKnown && transaction.isFolderTaken(folder)
      ? refused('conflict', `Another group has the folder ${folder} already. Choose another name.`)
      : undefined
  }

  const place = (
    { name, schedule, prompt, context_mode, jid, instructions }: Payload<'create_periodic_agent'>,
    folder: string,
    by: Group | undefined,
    seen: Taint,
    transaction: KernelTransaction,
    effect: (effect: Effect) => void,
  ): Outcome => {
    const at = now()
    const next = nextRun({ schedule_type: 'cron', schedule_value: schedule, timezone }, at)
    if (!next.ok) return next
    const known = table.find(name)
    const group = transaction.group(folder)
    const chat = jid ?? group?.jid ?? `local:${folder}`
    const conflict = conflictOf(chat, folder, known !== undefined, transaction)
    if (conflict) return conflict
    const task = known && transaction.task(known.taskId)
    const isOpen = task?.status === 'active' || task?.status === 'paused'
    const tooMany = tooManyTasks(
      folder,
      { prompt, script: null },
      { transaction, limits },
      task && isOpen ? task : undefined,
    )
    if (tooMany) return tooMany
    placeGroup({ folder, jid: chat, name }, group, by, at, transaction, effect)
    const id = task && isOpen ? task.id : transaction.newTaskId()
    const fresh = newTask(
      {
        id,
        group: folder,
        jid: chat,
        created_by: by?.folder ?? folder,
        prompt,
        schedule_type: 'cron',
        schedule_value: schedule,
        timezone,
        context_mode: context_mode ?? 'group',
        next_run: next.at.toISOString(),
      },
      at,
    )
    const about: Task = {
      ...fresh,
      last_run: task?.last_run ?? null,
      last_result: task?.last_result ?? null,
      created_at: task && isOpen ? task.created_at : fresh.created_at,
    }
    if (isOpen) transaction.updateTask(about)
    else transaction.insertTask(about)
    table.save({ name, group: folder, taskId: id })
    const isRenamed = group?.name !== name || group.jid !== chat
    const read = [
      taskContext(id),
      // Every run reads the instructions, which lie in the folder, and is told the name.
      ...(instructions === undefined ? [] : [folderContext]),
      ...(isRenamed ? [nameContext] : []),
    ]
    for (const context of read)
      transaction.addTaint(folder, context, seen, 'create_periodic_agent', at.getTime())
    const status = known ? 'changed' : 'created'
    transaction.audit({
      at: at.getTime(),
      group: by?.folder ?? null,
      actor: by ? 'agent' : 'operator',
      action: 'create_periodic_agent',
      summary: `the agent ${name} in ${folder}, woken by ${schedule}`,
      outcome: status,
    })
    effect({ kind: 'tasks_changed', folder })
    return done({ folder, jid: chat, task_id: id, next_run: about.next_run, status })
  }

  /** One at a time: two of one folder would take each other's instructions away. */
  let last: Promise<unknown> = Promise.resolve()
  const create: PeriodicAgents['create'] = (payload, asking, seen = nothing) => {
    const made = last.then(() => make(payload, asking, seen))
    last = made.catch(() => {})
    return made
  }

  const make = async (
    payload: Payload<'create_periodic_agent'>,
    asking: string | undefined,
    seen: Taint,
  ): Promise<Outcome> => {
    const by = asking === undefined ? undefined : host.group(asking)
    // Rights are those of the moment at which it happens (promise 2).
    if (asking !== undefined && !by?.main) {
      return refused('forbidden', 'Only the main group may use create_periodic_agent.')
    }
    const known = table.find(payload.name)
    const folder = known?.group ?? folderOf(payload.name)
    if (folder === undefined) {
      return refused(
        'invalid_field',
        'name: must be one that a folder can be named by, and not one of the host’s own',
      )
    }
    if (!known && host.groups().some(group => group.folder.toLowerCase() === folder)) {
      return refused('conflict', `Another group has the folder ${folder} already. Choose another name.`)
    }
    const laid = layDown(folder, payload.instructions)
    if ('ok' in laid) return laid
    let outcome: Outcome
    try {
      outcome = host.transaction((transaction, notify) =>
        place(payload, folder, by, seen, transaction, notify),
      )
    } catch (error) {
      laid.undo()
      throw error
    }
    if (!outcome.ok) {
      laid.undo()
      return outcome
    }
    // From here on it is there, whatever the agent has put in the way of its instructions.
    const problem = laid.keep()
    return problem === undefined
      ? outcome
      : refused(
          'wrong_state',
          `The agent ${payload.name} is as asked, except for its instructions: ${instructionsFile} in ${folder} cannot be replaced (${problem}).`,
        )
  }

  return {
    create,
    work: {
      name: 'create_periodic_agent',
      repeatable: true,
      timeoutMs: periodicMs,
      async call(input, { group }) {
        const { seen, ...payload } = inputSchema.parse(input)
        const outcome = await create(payload, group.folder, seen)
        if (outcome.ok) return outcome.result
        throw new ServiceRefusal(outcome.error.code, outcome.error.message)
      },
    },
  }
}
