/**
 * Who serves models, as far as it can be known in advance: where, by which APIs, and how a key is shown. A value of the
 * configuration (`model.url`, `model.keyVariable`) goes before what stands here.
 */

/** Anthropic's Messages, OpenAI's Responses and Chat Completions, Google's generateContent. */
export const modelApis = ['messages', 'responses', 'completions', 'generate'] as const
export type ModelApi = (typeof modelApis)[number]

export interface Provider {
  /** for people */
  title: string
  /** undefined: it has to be configured */
  url?: string
  /** the environment variables that may hold the key; the first that does counts */
  keyVariables: readonly string[]
  /** whether it answers nobody without a key */
  needsKey: boolean
  /** the first is the one that our own agent speaks */
  apis: readonly ModelApi[]
  /** the header that takes the key */
  keyHeader: 'x-api-key' | 'authorization' | 'x-goog-api-key'
}

/** A server that people run themselves, mostly without a key. */
const local = (title: string, url?: string): Provider => ({
  title,
  ...(url === undefined ? {} : { url }),
  keyVariables: ['MODEL_API_KEY'],
  needsKey: false,
  apis: ['completions', 'responses', 'messages'],
  keyHeader: 'authorization',
})

export const providers = {
  anthropic: {
    title: 'Anthropic',
    url: 'https://api.anthropic.com',
    // The second is what `claude setup-token` makes of a subscription.
    keyVariables: ['ANTHROPIC_API_KEY', 'CLAUDE_CODE_OAUTH_TOKEN'],
    needsKey: true,
    apis: ['messages'],
    keyHeader: 'x-api-key',
  },
  openai: {
    title: 'OpenAI',
    url: 'https://api.openai.com',
    keyVariables: ['OPENAI_API_KEY'],
    needsKey: true,
    apis: ['responses', 'completions'],
    keyHeader: 'authorization',
  },
  google: {
    title: 'Google',
    url: 'https://generativelanguage.googleapis.com',
    keyVariables: ['GEMINI_API_KEY', 'GOOGLE_API_KEY'],
    needsKey: true,
    apis: ['generate'],
    keyHeader: 'x-goog-api-key',
  },
  openrouter: {
    title: 'OpenRouter',
    url: 'https://openrouter.ai/api',
    keyVariables: ['OPENROUTER_API_KEY'],
    needsKey: true,
    apis: ['completions', 'responses', 'messages'],
    keyHeader: 'authorization',
  },
  ollama: local('Ollama', 'http://127.0.0.1:11434'),
  llamacpp: local('llama.cpp', 'http://127.0.0.1:8080'),
  lmstudio: local('LM Studio', 'http://127.0.0.1:1234'),
  vllm: local('vLLM', 'http://127.0.0.1:8000'),
  compatible: local('OpenAI-compatible server'),
} as const satisfies Record<string, Provider>

export type ProviderName = keyof typeof providers
export const providerNames = Object.keys(providers) as [ProviderName, ...ProviderName[]]
