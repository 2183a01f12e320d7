import { z } from 'zod'
import { costOf, type UsageLimits } from '../config/usage.ts'
import { type Config, settingsFor } from '../config.ts'
import type { Usage } from '../store/types.ts'
import type { ModelProblem } from './model-gateway/health.ts'

/**
 * How much of a model each group, and all of them together, have used today and this month, and what may still be used. The
 * sums are read once a day and added to meanwhile: a request must not wait for a sum over a month.
 */
export interface UsageMeter {
  add(usage: Usage): void
  /** why the group's model may not be asked */
  reached(folder: string): ModelProblem | undefined
  /** which limit is nearly reached */
  near(folder: string): ModelProblem | undefined
  /** For the rest of the day the limits of a group, or those of all together, are as many times as high. */
  raise(folder: string | undefined, factor: number): void
  /** every limit that is configured, with what is used of it */
  states(): LimitState[]
}

interface LimitState {
  /** undefined: of all groups together */
  folder: string | undefined
  limit: keyof UsageLimits
  used: number
  /** with what it was raised by today */
  most: number
}

interface Sums {
  tokensPerDay: number
  tokensPerMonth: number
  costPerDay: number
  costPerMonth: number
}

const nearly = 0.8
const everybody = ''
/** Folders are told apart without case. */
const scopeOf = (folder: string) => folder.toLowerCase()
const raisedKey = 'usage limits raised'
const raisedSchema = z.object({ day: z.string(), factors: z.record(z.string(), z.number()) })

const names: Record<keyof UsageLimits, string> = {
  tokensPerDay: 'tokens a day',
  tokensPerMonth: 'tokens a month',
  costPerDay: 'a day',
  costPerMonth: 'a month',
}

export function createUsageMeter(options: {
  config: Pick<Config, 'usage' | 'groups'>
  store: {
    usage(filter: { since: string }): readonly Usage[]
    meta(key: string): string | undefined
    setMeta(key: string, value: string): void
  }
  now(): Date
}): UsageMeter {
  const { config, store, now } = options
  const { prices, currency } = config.usage
  const limitsOf = (folder: string): UsageLimits =>
    folder === everybody
      ? config.usage.limits
      : Object.assign({}, ...settingsFor(config, folder).map(({ limits }) => limits))
  const limited = [everybody, ...Object.keys(config.groups)].filter(folder =>
    Object.values(limitsOf(folder)).some(most => most !== undefined),
  )
  let day = ''
  let sums = new Map<string, Sums>()
  let factors: Record<string, number> = {}

  const count = (usage: Usage) => {
    const tokens = usage.inputTokens + usage.outputTokens
    const cost = costOf(prices, usage) ?? 0
    for (const scope of [everybody, scopeOf(usage.group)]) {
      const sum = sums.get(scope) ?? { tokensPerDay: 0, tokensPerMonth: 0, costPerDay: 0, costPerMonth: 0 }
      sum.tokensPerMonth += tokens
      sum.costPerMonth += cost
      if (usage.day === day) {
        sum.tokensPerDay += tokens
        sum.costPerDay += cost
      }
      sums.set(scope, sum)
    }
  }
  const readToday = () => {
    const today = now().toISOString().slice(0, 10)
    if (today === day || limited.length === 0) return
    day = today
    sums = new Map()
    for (const usage of store.usage({ since: `${today.slice(0, 7)}-01` })) count(usage)
    const stored = store.meta(raisedKey)
    const raised = stored === undefined ? undefined : raisedSchema.parse(JSON.parse(stored))
    factors = raised?.day === today ? raised.factors : {}
  }
  const statesOf = (folder: string): LimitState[] => {
    readToday()
    const limits = limitsOf(folder)
    return (Object.keys(names) as (keyof UsageLimits)[]).flatMap(limit => {
      const most = limits[limit]
      if (most === undefined) return []
      const used = sums.get(scopeOf(folder))?.[limit] ?? 0
      return [{ folder: folder || undefined, limit, used, most: most * (factors[scopeOf(folder)] ?? 1) }]
    })
  }
  const worded = ({ folder, limit, most }: LimitState): string => {
    const amount = limit.startsWith('cost') ? `${currency}${most}` : String(most)
    return `The limit of ${amount} ${names[limit]} for ${folder === undefined ? 'all groups together' : 'this group'}`
  }
  const first = (folder: string, share: number, cause: 'limit_near' | 'limit_reached') => {
    if (limited.length === 0) return undefined
    const found = [...statesOf(folder), ...statesOf(everybody)].find(({ used, most }) => used >= share * most)
    return found && ({ cause, limit: worded(found) } satisfies ModelProblem)
  }

  return {
    add(usage) {
      if (limited.length === 0) return
      const isRead = day === usage.day
      readToday()
      // What was just read has it already: it is stored before it is added here.
      if (isRead) count(usage)
    },
    reached: folder => first(folder, 1, 'limit_reached'),
    near: folder => first(folder, nearly, 'limit_near'),
    raise(folder, factor) {
      readToday()
      const scope = scopeOf(folder ?? everybody)
      factors = { ...factors, [scope]: (factors[scope] ?? 1) * factor }
      store.setMeta(raisedKey, JSON.stringify({ day, factors }))
    },
    states: () => limited.flatMap(statesOf),
  }
}
