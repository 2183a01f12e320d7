import type { Step } from '../../commands/service-tools.ts'
import type { Room } from '../../runs/hooks.ts'
import type { OperatorsRepository } from './operator.ts'
import type { GroupRepository } from './repositories.ts'

export interface SyncOptions {
  /** names it over restarts; left out: it is asked for once */
  id?: string
  requestId?: string | null
  actor?: 'agent' | 'operator' | 'host'
  /** the revision that somebody has approved: no other is merged */
  approved?: string | undefined
  signal: AbortSignal
  progress?(step: Step): void
}

/** A sync that is under way: for whom, where git runs for it, and what was asked for. */
export interface Syncing extends Omit<SyncOptions, 'id'> {
  group: GroupRepository
  operators: OperatorsRepository
  room: Room
}

const steps = 4

/** People are told how far it has come. */
export const progressTo = ({ progress }: Pick<Syncing, 'progress'>, step: number, message: string): void =>
  progress?.({ progress: step, total: steps, message })
