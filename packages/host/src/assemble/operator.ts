import type { AnyCommand, Group, Outcome } from '@hatchway/protocol'
import { refusal } from '@hatchway/protocol'
import type { Quarantine } from '@hatchway/spool'
import type { Host } from '../api/host.ts'
import type { Effect } from '../commands/effects.ts'
import { addGroup } from '../commands/index.ts'
import type { Commands } from '../commands/registry.ts'
import type { CommandContext, HostRules } from '../commands/types.ts'
import { type Config, zoneOf } from '../config.ts'
import type { Effects } from '../outcomes/effects.ts'
import type { Positions } from '../store/positions.ts'
import type { Store } from '../store/types.ts'

/** What people on the host can do: the same operations as agents, with an operator's rights. */
export function createOperator(options: {
  config: Config
  store: Store
  commands: Commands
  quarantine: Quarantine
  effects: Effects
  positions: Positions
  /** what this process does itself */
  host: HostRules
  /** has a file of ours handled, now or by the next daemon; an error code if it cannot be moved */
  adopt(path: string, inbox: string, drop: string, name: string): string | undefined
  now(): Date
}): Pick<Host, 'perform' | 'addGroup' | 'removeGroup' | 'replay'> {
  const { config, store, quarantine, effects, positions, now } = options

  const asOperator = async (
    about: Group | undefined,
    work: (context: CommandContext) => Outcome | null,
  ): Promise<Outcome> => {
    const collected: Effect[] = []
    const outcome = store.transaction(transaction =>
      work({
        transaction,
        actor: { kind: 'operator' },
        seq: positions.next(),
        now: now(),
        timezone: about ? zoneOf(config, about.folder) : config.timezone,
        limits: config.limits,
        host: options.host,
        about,
        effect: effect => collected.push(effect),
      }),
    )
    effects.apply(collected)
    return (
      outcome ?? refuse('invalid_field', 'An operator is no group, and waits for no answer of a service.')
    )
  }
  const refuse = (code: Parameters<typeof refusal>[0], message: string): Outcome => ({
    ok: false,
    error: refusal(code, message),
  })
  const performCommand = (command: AnyCommand, about?: Group) =>
    asOperator(about, context => options.commands.perform(command, context))

  return {
    perform: performCommand,
    addGroup: group => asOperator(undefined, context => addGroup(context, group)),
    async removeGroup(folder) {
      const group = store.group(folder)
      if (!group) return refuse('not_found', `No group has the folder ${folder}.`)
      return performCommand({ type: 'unregister_group', payload: { jid: group.jid } })
    },
    async replay(id) {
      const entry = quarantine.find(id)
      if (!entry) return refuse('not_found', `No refused file has the id ${id}.`)
      if (!entry.kept || entry.original_file === null || entry.directory === null) {
        return refuse('not_found', 'The file itself was not kept, so it cannot be handled again.')
      }
      // The operator asks for a new decision, so the first answer no longer counts.
      store.forgetRequest(Number(entry.id))
      const failed = options.adopt(
        quarantine.pathOf(entry),
        entry.source_group,
        entry.directory,
        entry.original_file,
      )
      if (failed !== undefined) return refuse('internal', `The file could not be moved (${failed}).`)
      quarantine.forget(entry)
      return { ok: true, result: { id, status: 'replayed' } }
    },
  }
}
