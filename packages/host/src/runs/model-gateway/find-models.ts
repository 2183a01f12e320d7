import { chosenModel } from '../../config/model.ts'
import { type ProviderName, providerNames, providers } from '../../config/providers.ts'
import { keyOf, keyProblem, sentenceOf } from './health.ts'
import { type ListedModel, listModels } from './list-models.ts'

/** A provider that can be used here without any configuration: there is a key for it, or its server runs on its usual port. */
export interface FoundProvider {
  provider: ProviderName
  title: string
  url: string
  /** the variable that has the key; undefined: none is needed */
  keyVariable: string | undefined
  /** those that can hold a conversation, the best guess first */
  models: readonly string[]
  /** why it cannot be used, in a sentence */
  problem: string | undefined
}

/** Somebody waits; a server on this machine answers at once, or is not there. */
const remoteMs = 4000
const localMs = 1500
const mostShown = 200

/**
 * Looks at the environment for keys, and on this machine for servers. A server that was only guessed at gets no key.
 * `urls`: where providers are, if not at their usual address.
 */
export async function findModels(
  environment: NodeJS.ProcessEnv,
  urls: Partial<Record<ProviderName, string>> = {},
): Promise<FoundProvider[]> {
  const found = await Promise.all(
    providerNames.map(provider => {
      const settings = { provider, ...(urls[provider] === undefined ? {} : { url: urls[provider] }) }
      return providers[provider].needsKey ? withKey(settings, environment) : running(settings)
    }),
  )
  return found.filter(one => one !== undefined)
}

type Settings = { provider: ProviderName; url?: string }

async function withKey(
  settings: Settings,
  environment: NodeJS.ProcessEnv,
): Promise<FoundProvider | undefined> {
  const { provider } = settings
  const model = chosenModel(settings, environment)
  const { title, url, keyVariable } = model
  const key = keyOf(model, environment)
  if (key === '') return undefined
  const wrong = keyProblem(model, environment)
  const list = wrong ? { problem: wrong } : await listModels(model, key, remoteMs)
  return {
    ...{ provider, title, url, keyVariable },
    models: list.problem ? [] : sorted(provider, list.models ?? []),
    problem: list.problem && sentenceOf(list.problem, model),
  }
}

async function running(settings: Settings): Promise<FoundProvider | undefined> {
  const { provider } = settings
  const model = chosenModel(settings, {})
  const { title, url } = model
  if (url === '') return undefined
  const list = await listModels(model, '', localMs)
  // Many programs listen on such ports. What refuses, or has no list of models, is some other one.
  if (list.problem || list.models === undefined) return undefined
  const isEmpty = list.models.length === 0
  return {
    ...{ provider, title, url, keyVariable: undefined },
    models: sorted(provider, list.models),
    problem: isEmpty ? `${title} runs at ${url} and has no model yet.` : undefined,
  }
}

/** What no conversation can be held with. */
const otherUses =
  /embed|bge-|minilm|rerank|moderation|whisper|transcribe|tts|speech|audio|realtime|dall-e|image|imagen|veo|sora|babbage|davinci|llama-?guard|shieldgemma|aqa/i
/** Made for trials, or one day's state of a model that has a name of its own. */
const lesser = /preview|experimental|[-_]exp\b|beta|instruct-0|[-_]\d{4}-\d{2}-\d{2}$/i

/** Which of a provider's models most people want, as far as names say it. */
const usual: Partial<Record<ProviderName, readonly RegExp[]>> = {
  anthropic: [/sonnet/, /opus/, /haiku/],
  openai: [/^gpt-[\d.]+$/, /^gpt-[\d.]+-mini$/, /^gpt-/],
  google: [/^gemini-[\d.]+-flash$/, /^gemini-[\d.]+-pro$/, /^gemini-/],
  openrouter: [/^anthropic\/.*sonnet/, /^openai\/gpt-/, /^google\/gemini-/, /:free$/],
}

const byName = new Intl.Collator('en', { numeric: true })

function sorted(provider: ProviderName, models: readonly ListedModel[]): string[] {
  const patterns = usual[provider] ?? []
  const ranked = models
    .filter(({ name }) => !otherUses.test(name))
    .map(({ name, at }) => {
      const place = patterns.findIndex(pattern => pattern.test(name))
      return { name, at, isLesser: lesser.test(name), place: place === -1 ? patterns.length : place }
    })
    .sort(
      (a, b) =>
        Number(a.isLesser) - Number(b.isLesser) ||
        a.place - b.place ||
        b.at - a.at ||
        byName.compare(b.name, a.name),
    )
  return [...new Set(ranked.map(({ name }) => name))].slice(0, mostShown)
}
