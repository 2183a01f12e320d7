import { z } from 'zod'
import { whole } from './values.ts'

/** What the use of models may cost, in tokens or in money, for one group or for all together. */
const largest = Number.MAX_SAFE_INTEGER
const money = z.number().positive().max(1e9)

export const usageLimitsSchema = z.strictObject({
  tokensPerDay: whole(1, largest)
    .optional()
    .describe('Tokens, in and out together, that all groups may use in a day (UTC).')
    .meta({ otherwise: 'no limit' }),
  tokensPerMonth: whole(1, largest)
    .optional()
    .describe('The same for a calendar month.')
    .meta({ otherwise: 'no limit' }),
  costPerDay: money
    .optional()
    .describe('What all groups may cost in a day, by `usage.prices`.')
    .meta({ allowed: 'an amount', otherwise: 'no limit' }),
  costPerMonth: money
    .optional()
    .describe('The same for a calendar month.')
    .meta({ allowed: 'an amount', otherwise: 'no limit' }),
})
export type UsageLimits = z.output<typeof usageLimitsSchema>

const price = z.number().min(0).max(1e6)

const priceSchema = z.strictObject({
  input: price,
  output: price,
  /** of input that the provider had in its cache; left out: the same as other input */
  cached: price.optional(),
})

export const usageSettingsSchema = z.strictObject({
  prices: z
    .record(z.string().min(1).max(200), priceSchema)
    .default({})
    .describe(
      'Prices for a million tokens, by the beginning of the model’s name; see docs/models.md. Only in the configuration file.',
    )
    .meta({ allowed: 'an object of prices by model', otherwise: 'none' }),
  currency: z
    .string()
    .regex(/^[A-Za-z€$£¥₹]{1,5}$/)
    .default('$')
    .describe('What the prices are in; only shown.')
    .meta({ allowed: 'a sign or up to five letters' }),
  limits: usageLimitsSchema.prefault({}),
})
export type UsageSettings = z.output<typeof usageSettingsSchema>

interface Tokens {
  model: string
  inputTokens: number
  outputTokens: number
  cachedTokens: number
}

/** The name in the prices that a model's price is found by; undefined: none is known. */
export const priceNameOf = (prices: UsageSettings['prices'], model: string): string | undefined =>
  Object.keys(prices)
    .filter(name => model.startsWith(name))
    .sort((one, other) => other.length - one.length)[0]

/** What was used, in the currency of the prices; undefined: no price is known for the model. */
export function costOf(prices: UsageSettings['prices'], used: Tokens): number | undefined {
  const found = priceNameOf(prices, used.model)
  const known = found === undefined ? undefined : prices[found]
  if (!known) return undefined
  const cached = Math.min(used.cachedTokens, used.inputTokens)
  const input = (used.inputTokens - cached) * known.input + cached * (known.cached ?? known.input)
  return (input + used.outputTokens * known.output) / 1e6
}
