import { describe, expect, onTestFinished, test } from 'vitest'
import { findProgram } from '../../host/src/base/programs.ts'
import { type ApiName, type ScriptedModel, serveModelApis } from '../src/agents/model-apis.ts'
import { openInstallation } from '../src/daemon/installation.ts'
import { until } from '../src/until.ts'

/** A model is named in one line, answers in a sandbox, and uses no more than it may. */
const missing = findProgram('bwrap') ? undefined : 'bwrap'
const attempt = missing === undefined || process.env.CI === 'true' ? test : test.skip

async function standIn(model: ScriptedModel) {
  const api = await serveModelApis(model)
  onTestFinished(() => api.close())
  return api
}

const providers: readonly [string, ApiName, string | undefined][] = [
  ['anthropic', 'messages', 'ANTHROPIC_API_KEY'],
  ['openai', 'responses', 'OPENAI_API_KEY'],
  ['google', 'generate', 'GEMINI_API_KEY'],
  ['compatible', 'completions', undefined],
]

describe(`A model in a sandbox${missing === undefined ? '' : ` (needs ${missing})`}`, () => {
  attempt.each(providers)(
    '%s answers by %s, and is paid with the host’s key',
    async (provider, format, variable) => {
      const api = await standIn(() => ({ text: 'Good morning.' }))
      const { say, hatchway } = await openInstallation({
        sandbox: 'bubblewrap',
        environment: () => ({
          HATCHWAY_MODEL: `${provider}/stand-in`,
          HATCHWAY_MODEL_URL: api.url,
          ...(variable === undefined ? {} : { [variable]: 'sk-of-the-host-0123' }),
        }),
      })
      expect(await say('hello')).toContain('Good morning.')
      expect(api.requests[0]).toMatchObject({ api: format, model: 'stand-in' })
      const shown = JSON.stringify(api.requests[0]?.headers)
      if (variable !== undefined) expect(shown).toContain('sk-of-the-host-0123')
      expect(await hatchway('usage')).toMatch(/main\s+stand-in\s+1 /)
      expect(await hatchway('models')).toMatch(/stand-in .*answers/)
    },
  )

  attempt('stops at its limit, says so, and goes on when a person raises it', async () => {
    const api = await standIn(() => ({ text: 'Good morning.' }))
    const { say, texts, hatchway } = await openInstallation({
      sandbox: 'bubblewrap',
      environment: () => ({
        HATCHWAY_MODEL: 'compatible/stand-in',
        HATCHWAY_MODEL_URL: api.url,
        HATCHWAY_USAGE_LIMITS_TOKENS_PER_DAY: '1',
      }),
    })
    expect(await say('hello')).toContain('Good morning.')
    await say('hello again')
    await until(async () => (await texts()).some(text => text.includes('I could not answer that.')))
    expect((await texts()).at(-1)).toContain('The limit of 1 tokens a day for all groups together is reached')
    expect(api.requests).toHaveLength(1)
    expect(await hatchway('usage', 'limits')).toMatch(/\(all\)\s+tokensPerDay/)
    await hatchway('usage', 'raise', '--factor', '1000')
    expect(await say('and now?')).toContain('Good morning.')
  })
})

test('a model that cannot be asked is said by `hatchway models`, with the reason', async () => {
  const api = await standIn(() => ({ status: 401 }))
  const { hatchway } = await openInstallation({
    sandbox: 'process',
    environment: () => ({
      HATCHWAY_AGENTS_DRIVER: 'concierge',
      HATCHWAY_MODEL: 'compatible/another',
      HATCHWAY_MODEL_URL: api.url,
    }),
  })
  expect(await hatchway('models', '--json')).toContain('does not know the model another')
  await api.close()
  const [found] = JSON.parse(await hatchway('models', '--json'))
  expect(found).toMatchObject({
    provider: 'compatible',
    key_variable: null,
    problem: expect.stringContaining('(ECONNREFUSED)'),
  })
})
