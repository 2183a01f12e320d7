import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { ConfigInput } from '../config.ts'
import { loadConfig } from './load.ts'
import { chosenAtRunTime, chosenModel } from './model.ts'

function configFile(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'hatchway-model-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'hatchway.config.mjs')
  writeFileSync(file, `export default ${text}`)
  return file
}
const loaded = (overrides: ConfigInput, env: NodeJS.ProcessEnv = {}) =>
  loadConfig({ overrides, env, cwd: tmpdir() })

test.each([
  ['ollama/qwen3:8b', { provider: 'ollama', name: 'qwen3:8b' }],
  ['openrouter/anthropic/claude-x', { provider: 'openrouter', name: 'anthropic/claude-x' }],
  ['anthropic', { provider: 'anthropic' }],
])('the model %s', async (model, settings) => {
  expect((await loaded({ model })).model).toEqual(settings)
  expect((await loaded({}, { HATCHWAY_MODEL: model })).model).toEqual(settings)
})

test.each([
  ['olama/qwen3', /model\.provider on the command line is "olama"; it must be one of anthropic, openai,/],
  ['compatible/x', /model\.url is missing; the provider `compatible` needs/],
  ['ollama/', /model\.name .*must be the name of a model/],
])('a model that is none is refused with what there is: %s', async (model, words) => {
  await expect(loaded({ model })).rejects.toThrow(words)
})

test('the model of the environment takes the place of the file’s, its address and its key included', async () => {
  const file = configFile(
    `{ model: { provider: 'compatible', url: 'https://models.example', keyVariable: 'OURS' } }`,
  )
  const config = await loadConfig({ file, env: { HATCHWAY_MODEL: 'openai/gpt-x' } })
  expect(config.model).toEqual({ provider: 'openai', name: 'gpt-x' })
})

test('whoever names a model and no agent gets the one that can speak with any', async () => {
  expect((await loaded({})).agents.driver).toBe('concierge')
  expect((await loaded({ model: 'ollama/qwen3' })).agents.driver).toBe('assistant')
  expect((await loaded({ model: 'anthropic', agents: { driver: 'claude' } })).agents.driver).toBe('claude')
  const { groups } = await loaded({ groups: { family: { model: 'ollama/qwen3' }, work: {} } })
  expect([groups.family, groups.work]).toEqual([
    { model: { provider: 'ollama', name: 'qwen3' }, driver: 'assistant' },
    {},
  ])
})

test('the key is looked for where the provider’s other programs look', () => {
  const environment = {
    CLAUDE_CODE_OAUTH_TOKEN: 'sk-ant-oat01-x',
    GOOGLE_API_KEY: 'x',
    ANTHROPIC_API_KEY: ' ',
  }
  const variable = (provider: 'anthropic' | 'google' | 'openai') =>
    chosenModel({ provider }, environment).keyVariable
  expect([variable('anthropic'), variable('google'), variable('openai')]).toEqual([
    'CLAUDE_CODE_OAUTH_TOKEN',
    'GOOGLE_API_KEY',
    'OPENAI_API_KEY',
  ])
})

test('a model that was chosen at run time has the key of its provider, or none', () => {
  const environment = { MODEL_API_KEY: 'x', OPENAI_API_KEY: 'y' }
  const variable = (provider: 'openai' | 'vllm') =>
    chosenModel(chosenAtRunTime({ provider, name: 'm' }), environment).keyVariable
  expect([variable('openai'), variable('vllm')]).toEqual(['OPENAI_API_KEY', ''])
})

test('settings without a provider mean what they meant before there were several', () => {
  const before = chosenModel({ url: 'https://gateway.example', keyVariable: 'OURS' }, {})
  expect(before).toMatchObject({
    url: 'https://gateway.example',
    keyVariable: 'OURS',
    needsKey: true,
    keyHeader: undefined,
    apis: ['messages', 'responses', 'completions', 'generate'],
  })
})

test('an address may end in the version, as in other programs', () => {
  const at = (url: string) => chosenModel({ provider: 'compatible', url }, {}).url
  expect(at('https://models.example/api/v1/')).toBe('https://models.example/api')
  expect(at('https://models.example/api')).toBe('https://models.example/api')
})
