import type { DialectName } from '@hatchway/protocol'
import type { ConfigInput } from '../../../host/src/config.ts'
import { guardedService } from '../paths.ts'
import type { SoakOptions } from './options.ts'

/**
 * Who lives where. In `inhabited` groups people write and real agents run: a session that ends takes the open requests
 * of its container along, so that nobody else may ask for anything there. All others are agents of our own, which only
 * write and read files.
 */
export interface SoakGroup {
  folder: string
  jid: string
  dialect: DialectName
  lives: 'main' | 'inhabited' | 'asking' | 'guarded' | 'flat'
}

const flatDialects = ['nanoclaw', 'novabot', 'mdclaw', 'pynchy'] as const

export function planGroups(count: number): SoakGroup[] {
  const inhabited = Math.max(2, Math.floor(count / 12))
  const guarded = Math.max(1, Math.min(8, Math.floor(count / 40)))
  const flat = Math.max(flatDialects.length, Math.floor(count / 3))
  return Array.from({ length: count }, (_, i): SoakGroup => {
    const folder = `g${String(i).padStart(4, '0')}`
    if (i === 0) return { folder: 'main', jid: 'local:main', dialect: 'hatchway', lives: 'main' }
    if (i <= inhabited) return { folder, jid: `web:${folder}`, dialect: 'hatchway', lives: 'inhabited' }
    if (i <= inhabited + guarded)
      return { folder, jid: `web:${folder}`, dialect: 'hatchway', lives: 'guarded' }
    if (i <= inhabited + guarded + flat) {
      const dialect = flatDialects[i % flatDialects.length] ?? 'nanoclaw'
      return { folder, jid: `${folder}@chat`, dialect, lives: 'flat' }
    }
    return {
      folder,
      jid: i % 2 === 0 ? `web:${folder}` : `${folder}@chat`,
      dialect: 'hatchway',
      lives: 'asking',
    }
  })
}

export interface GroupsByLife {
  of(...lives: SoakGroup['lives'][]): SoakGroup[]
}
export const byLife = (groups: readonly SoakGroup[]): GroupsByLife => ({
  of: (...lives) => groups.filter(group => lives.includes(group.lives)),
})

/** What everything that is kept is cut down to, so that it is full within the first quarter. */
export interface Kept {
  messages: number
  runs: number
  tasks: number
  audit: number
  errorsOfAGroup: number
  /** so many groups of each kind have files refused */
  refusing: number
  fileBytes: number
}

export const largestFile = 4096

export function keptFor({ minutes, rate, chats }: SoakOptions): Kept {
  const half = (minutes * 60) / 8
  const commands = rate * half
  const atLeast = (least: number, value: number) => Math.max(least, Math.floor(value))
  return {
    messages: atLeast(200, commands * 0.5),
    runs: atLeast(20, chats * half * 0.5),
    tasks: atLeast(20, commands * 0.02),
    audit: atLeast(50, commands * 0.05),
    errorsOfAGroup: 2,
    refusing: atLeast(2, (commands * 0.01) / 4),
    fileBytes: 4 * largestFile,
  }
}

export const idleMs = 3000
const approvalMs = 5000
const questionMs = 5000
const errorBlock = 4096
const largestRefused = 512

/** The daemon's settings: as it is by default, but for what it keeps and how long people are waited for. */
/** One user for all groups, because one process plays the agents of many. */
export const agentUid = 1000

export const configFor = ({ sessions }: SoakOptions, kept: Kept): ConfigInput => ({
  web: { port: 0 },
  container: { uid: agentUid },
  agents: { atOnce: sessions, idleMs },
  guard: { approvalMs },
  services: { questionMs, plugins: [guardedService] },
  keep: {
    commands: 1,
    messages: kept.messages,
    runs: kept.runs,
    tasks: kept.tasks,
    audit: kept.audit,
    fileBytes: kept.fileBytes,
  },
  limits: { errorBytes: kept.errorsOfAGroup * (errorBlock + largestRefused) },
})
