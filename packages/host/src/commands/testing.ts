import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type Command,
  type CommandType,
  commandSchema,
  type Group,
  type Outcome,
  type Task,
} from '@hatchway/protocol'
import { configSchema } from '../config.ts'
import { deployCommand } from '../plugins/deploy/command.ts'
import { hostJobCommand } from '../plugins/jobs/command.ts'
import type { JobRules } from '../plugins/jobs/rules.ts'
import { periodicCommand } from '../plugins/periodic/command.ts'
import { createPeriodicTable } from '../plugins/periodic/table.ts'
import { type SyncCommandOptions, syncCommand } from '../plugins/worktrees/command.ts'
import { openStore } from '../store/sqlite.ts'
import type { Store } from '../store/types.ts'
import type { Effect } from './effects.ts'
import type { NewGroup } from './groups.ts'
import { addGroup, kernelCommands } from './index.ts'
import { createCommands } from './registry.ts'
import type { Actor, CommandContext, CommandDefinition } from './types.ts'

export interface Answer {
  outcome: Outcome
  effects: readonly Effect[]
}

interface TestbedRules
  extends Pick<CommandContext, 'host' | 'guard' | 'isReleased' | 'seen' | 'heldIn' | 'request'> {
  openTasks?: number
  limits?: Partial<CommandContext['limits']>
  repositoryOf?: SyncCommandOptions['repositoryOf'] | undefined
  jobs?: JobRules | undefined
}

/** The kernel's commands and those of the plugins that ship with it, as far as they can be had without a daemon. */
export const allCommands = (
  store: Store,
  { repositoryOf = () => undefined, jobs }: Pick<TestbedRules, 'repositoryOf' | 'jobs'> = {},
): readonly CommandDefinition[] => [
  ...kernelCommands,
  syncCommand({ repositoryOf, timeoutMs: undefined }),
  hostJobCommand(jobs),
  periodicCommand(
    createPeriodicTable(store.pluginTables({ name: 'periodic', tables: ['periodic_agents'] }).sql),
  ),
  deployCommand(undefined),
]

/** Operations on a real store, with a clock that stands still until it is set. */
export const openTestbed = ({
  openTasks = 1000,
  limits = {},
  repositoryOf,
  jobs,
  ...rules
}: TestbedRules = {}) => {
  const directory = mkdtempSync(join(tmpdir(), 'hatchway-operations-'))
  const store = openStore({ path: join(directory, 'hatchway.db'), durability: 'process' })
  const commands = createCommands(allCommands(store, { repositoryOf, jobs }))
  let now = new Date('2026-01-15T12:00:00.000Z')
  let seq = 0

  const inTransaction = async (
    actorOf: (folder: CommandContext['transaction']) => Actor,
    work: (context: CommandContext) => Outcome | null,
  ): Promise<Answer> => {
    const effects: Effect[] = []
    seq += 1
    const outcome = store.transaction(transaction =>
      work({
        transaction,
        actor: actorOf(transaction),
        seq,
        now,
        timezone: 'Europe/Berlin',
        limits: { ...configSchema.parse({}).limits, openTasks, openRequests: 100, ...limits },
        ...rules,
        effect: effect => void effects.push(effect),
      }),
    )
    return { outcome: outcome ?? { ok: true, result: { status: 'answer follows' } }, effects }
  }

  const operator: Actor = { kind: 'operator' }

  return {
    store,
    setClock: (instant: string) => {
      now = new Date(instant)
    },
    add: (group: NewGroup) =>
      inTransaction(
        () => operator,
        context => addGroup(context, group),
      ),
    /** Does what a group, known by its folder, or the operator asks. The payload passes the schema first. */
    ask: (who: string, type: CommandType, payload: object): Promise<Answer> => {
      const command: Command = commandSchema.parse({ type, payload })
      return inTransaction(
        transaction => {
          if (who === 'operator') return operator
          const group = transaction.group(who)
          if (!group) throw new Error(`no group ${who}`)
          return { kind: 'group', group }
        },
        context => commands.perform(command, context),
      )
    },
    group: (folder: string): Group | undefined => store.groups().find(group => group.folder === folder),
    task: (id: string): Task | undefined => store.tasks({}).find(task => task.id === id),
    [Symbol.dispose]() {
      store.close()
      rmSync(directory, { recursive: true })
    },
  }
}

export const codeOf = ({ outcome }: Answer): string => (outcome.ok ? 'done' : outcome.error.code)
