import { describe, expect, onTestFinished, test } from 'vitest'
import { findProgram } from '../../host/src/base/programs.ts'
import { type ModelRequest, serveMessagesApi } from '../src/agents/messages-api.ts'
import { openInstallation } from '../src/daemon/installation.ts'
import { until } from '../src/until.ts'

/**
 * Claude's own program in a sandbox without a network and without a key. The model is played by the test behind the
 * host's forwarder; everything else is real.
 */
const key = 'sk-the-hosts-own-key'
const missing = findProgram('bwrap') ? undefined : 'bwrap'
const attempt = missing === undefined || process.env.CI === 'true' ? test : test.skip

const lastText = ({ messages }: ModelRequest): string =>
  JSON.stringify(messages.findLast(({ role }) => role === 'user'))

const tool = (name: string, input: object) => ({ name: `mcp__hatchway__${name}`, input })

/** Every tool there is, and a look at what a sandbox must not have. */
const work = [
  [
    tool('send_message', { text: 'I am on it.' }),
    tool('schedule_task', { prompt: 'look again', schedule_type: 'interval', schedule_value: '3600000' }),
    {
      name: 'Bash',
      input: {
        command:
          'env | grep -i key; bash -c "echo > /dev/tcp/192.0.2.1/80" 2>&1; ls /root /workspace; touch /workspace/ipc/x 2>&1',
      },
    },
  ],
  [tool('list_tasks', {}), tool('list_groups', {}), tool('refresh_groups', {})],
  [tool('register_group', { jid: 'web:other', name: 'Other', folder: 'other', trigger: '@Other' })],
  [tool('update_task', { task_id: '1', prompt: 'look twice' })],
  [tool('pause_task', { task_id: '1' })],
  [tool('resume_task', { task_id: '1' })],
  [tool('cancel_task', { task_id: '1' }), tool('unregister_group', { jid: 'web:other' })],
  [tool('cancel_task', { task_id: 'no-such-task' })],
]

describe(`Claude in a sandbox${missing === undefined ? '' : ` (needs ${missing})`}`, () => {
  attempt(
    'calls every tool, hears a follow-up in the middle of a turn, and goes on after a restart',
    async () => {
      let release = () => {}
      const released = new Promise<void>(resolve => {
        release = resolve
      })
      let step = 0
      const api = await serveMessagesApi(async request => {
        const last = lastText(request)
        const calls = work[step]
        const isAtWork = last.includes('please') || last.includes('tool_result')
        if (calls && isAtWork) {
          if (step++ > 0) await released
          return { calls }
        }
        if (isAtWork) return { text: 'All of it is done.' }
        return { text: `You said: ${/me again|also this/.exec(last)?.[0] ?? 'something'}` }
      })
      onTestFinished(() => api.close())
      const installation = await openInstallation({
        sandbox: 'bubblewrap',
        environment: () => ({
          HATCHWAY_AGENTS_DRIVER: 'claude',
          HATCHWAY_MODEL_URL: api.url,
          ANTHROPIC_API_KEY: key,
        }),
      })
      const first = installation.hatchway('chat', '--once', 'please do it', '--wait')
      await until(async () => (await installation.texts()).includes('I am on it.'))
      await until(async () => api.requests.length >= 2)
      await installation.hatchway('chat', '--once', 'also this')
      release()
      await first
      await until(async () =>
        api.requests.some(request => JSON.stringify(request.messages).includes('also this')),
      )
      await until(async () => (await installation.texts()).length >= 2)
      expect(await installation.runs()).toHaveLength(1)
      const answers = JSON.stringify(api.requests.at(-1)?.messages)
      for (const fact of ['active', 'paused', 'cancelled', 'web:other', 'look again'])
        expect(answers).toContain(fact)
      expect(answers).toContain('There is no task with this id')
      const transcript = JSON.parse(
        await installation.hatchway('runs', 'show', (await installation.runs())[0]?.id ?? '', '--json'),
      )
      const called = transcript.steps.flatMap(({ kind, name }: { kind: string; name: string }) =>
        kind === 'tool_call' ? [name] : [],
      )
      expect(called).toEqual(work.flat().map(({ name }) => name))

      // The key is the host's, and the sandbox saw neither it nor a network.
      expect(api.requests.every(({ headers }) => headers['x-api-key'] === key)).toBe(true)
      const seen = api.requests.map(lastText).join('')
      expect(seen).not.toContain(key)
      expect(seen).toContain('Network is unreachable')
      expect(seen).toContain('Read-only file system')

      const usage = JSON.parse(await installation.hatchway('usage', '--json'))
      expect(usage).toMatchObject([
        { group: 'main', requests: expect.any(Number), input_tokens: expect.any(Number) },
      ])
      expect(usage[0].requests).toBeGreaterThanOrEqual(api.requests.length)

      await installation.daemon()?.stop()
      const before = api.requests.length
      await installation.up()
      expect(await installation.say('me again')).toContain('me again')
      // It goes on where it was: the model is told the whole conversation.
      expect(JSON.stringify(api.requests[before]?.messages)).toContain('please do it')
      expect(JSON.stringify(api.requests[before]?.messages)).toContain('also this')
    },
  )

  attempt('is stopped in the middle of a turn by each way there is, knows it, and goes on', async () => {
    const hanging = Promise.withResolvers<void>()
    const api = await serveMessagesApi(async request => {
      // Turns without an answer come back together with what is said next.
      if (lastText(request).includes('still there')) return { text: 'Here I am.' }
      await hanging.promise
      return { text: 'Half an answer.' }
    })
    onTestFinished(() => {
      hanging.resolve()
      return api.close()
    })
    const installation = await openInstallation({
      sandbox: 'bubblewrap',
      environment: () => ({
        HATCHWAY_AGENTS_DRIVER: 'claude',
        HATCHWAY_MODEL_URL: api.url,
        ANTHROPIC_API_KEY: key,
      }),
    })
    const ways = [
      () => installation.hatchway('chat', '--once', '/stop'),
      () => installation.hatchway('runs', 'stop', 'main'),
    ]
    for (const [round, stop] of ways.entries()) {
      const before = api.requests.length
      await installation.hatchway('chat', '--once', `something slow ${round}`)
      await until(async () =>
        api.requests.slice(before).some(request => lastText(request).includes(`slow ${round}`)),
      )
      await stop()
      await until(
        async () =>
          (await installation.texts()).filter(text => text.startsWith('Stopped by ')).length > round,
      )
    }
    expect(await installation.say('still there?')).toContain('Here I am.')
    expect(await installation.texts()).not.toContain('Half an answer.')
    expect(JSON.stringify(api.requests.at(-1)?.messages)).toContain('interrupted by user')
    expect(await installation.runs()).toMatchObject([
      { status: 'running', driver: 'claude', sandbox: 'bubblewrap' },
    ])
    const nothing = await installation.hatchway('runs', 'stop', 'main').catch(error => String(error))
    expect(nothing).toContain('wrong_state')
  })
})
