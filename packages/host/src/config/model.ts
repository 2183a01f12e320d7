import { z } from 'zod'
import {
  type ModelApi,
  modelApis,
  type Provider,
  type ProviderName,
  providerNames,
  providers,
} from './providers.ts'
import { isWithoutPassword, variableName } from './values.ts'

/**
 * Which model agents ask: `'ollama/qwen3'` for most people, an object where the address or the key is another one. Without
 * `provider`, as before there were several: the Messages API at `url`, and every other API that is asked for there.
 */
export const modelSchema = z.strictObject({
  provider: z
    .enum(providerNames)
    .optional()
    .describe(
      'Who serves the model. `compatible`: any server that speaks OpenAI’s API; it needs `model.url`.',
    )
    .meta({ otherwise: 'Anthropic, or whatever is at `model.url`' }),
  name: z
    .string()
    .regex(/^[\w.:@/+-]{1,128}$/, 'must be the name of a model')
    .optional()
    .describe('The model, by the provider’s name for it.')
    .meta({ allowed: 'the name of a model', otherwise: 'what the agent asks for' }),
  url: z
    .url({ protocol: /^https?$/ })
    .refine(isWithoutPassword, 'must not hold a user or a password; use keyVariable')
    .optional()
    .describe('The model API that requests from sandboxes are forwarded to.')
    .meta({ allowed: 'an http or https address', otherwise: 'the provider’s own' }),
  context: z
    .int()
    .min(4000)
    .max(10_000_000)
    .optional()
    .describe('How many tokens the model can hold. The driver `assistant` keeps the conversation within it.')
    .meta({ otherwise: '32000 for models asked by Chat Completions, 128000 for others' }),
  keyVariable: variableName
    .optional()
    .describe('The host’s environment variable with the API key. Sandboxes never see it.')
    .meta({ allowed: 'the name of a variable', otherwise: 'the provider’s usual one' }),
})

export type ModelSettings = z.output<typeof modelSchema> & {
  /** it is asked without a key, whatever its usual variable holds; not in the configuration */
  withoutKey?: true
}
export type ModelInput = string | z.input<typeof modelSchema>

/** What is wrong with them together: a setting, and the rest of the sentence. */
export const modelProblems = ({ provider, url }: ModelSettings): { setting: string; problem: string }[] =>
  provider === 'compatible' && url === undefined
    ? [{ setting: 'url', problem: 'is missing; the provider `compatible` needs the address of its server.' }]
    : []

/** `provider/name`, or the provider alone. Whether they exist is for the schema to say. */
export function modelFromText(text: string): Record<string, string> {
  const at = text.indexOf('/')
  return at === -1 ? { provider: text } : { provider: text.slice(0, at), name: text.slice(at + 1) }
}

/** A model as everything that asks one has to know it. */
export interface ChosenModel {
  provider: ProviderName | undefined
  /** for people: who it is that is asked */
  title: string
  url: string
  name: string | undefined
  /** where its key is, or would have to be; empty: it is sent none */
  keyVariable: string
  needsKey: boolean
  apis: readonly ModelApi[]
  /** undefined: the header in which the sandbox’s placeholder came */
  keyHeader: Provider['keyHeader'] | undefined
}

const anyApi = { title: 'the model API', apis: modelApis, keyHeader: undefined } as const

/** What is known of a model’s settings, with the provider’s usual values. */
export function chosenModel(settings: ModelSettings, environment: NodeJS.ProcessEnv): ChosenModel {
  const { provider, name, url, keyVariable, withoutKey } = settings
  const usual: Provider = providers[provider ?? 'anthropic']
  const { needsKey } = usual
  const isSet = (variable: string) => (environment[variable] ?? '').trim() !== ''
  return {
    provider,
    name,
    title: usual.title,
    apis: usual.apis,
    keyHeader: usual.keyHeader,
    ...(provider === undefined ? anyApi : {}),
    url: provider === undefined ? (url ?? usual.url ?? '') : withoutVersion(url ?? usual.url ?? ''),
    keyVariable: withoutKey
      ? ''
      : (keyVariable ?? usual.keyVariables.find(isSet) ?? usual.keyVariables[0] ?? ''),
    needsKey: needsKey || (keyVariable !== undefined && provider !== undefined),
  }
}

/**
 * A model as it is asked that was chosen while the host ran. Keys are not part of the choice: `MODEL_API_KEY` is somebody's
 * for another server, and what listens on a usual port may be any program.
 */
export const chosenAtRunTime = (settings: ModelSettings): ModelSettings =>
  providers[settings.provider ?? 'anthropic'].needsKey ? settings : { ...settings, withoutKey: true }

/** Other programs want the address with its version, and people copy it. */
const withoutVersion = (url: string): string => url.replace(/\/v1(beta)?\/?$/, '')
