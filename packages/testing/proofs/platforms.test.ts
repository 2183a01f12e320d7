import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { rolldown } from 'rolldown'
import { expect, onTestFinished, test } from 'vitest'
import { approvalsAnswer } from '../../host/src/api/chat-answers.ts'
import { announcedSocket } from '../../host/src/api/socket.ts'
import { layoutOf } from '../../host/src/base/layout.ts'
import { findProgram } from '../../host/src/base/programs.ts'
import { overSocket } from '../../host/src/client/over-socket.ts'
import { findLibrary } from '../../host/src/plugins/channels/library.ts'
import { slack } from '../../host/src/plugins/channels/slack/kind.ts'
import { telegram } from '../../host/src/plugins/channels/telegram/kind.ts'
import type { Platform } from '../src/channels/platform.ts'
import { openSlack } from '../src/channels/slack/platform.ts'
import { openTelegram } from '../src/channels/telegram/platform.ts'
import { openInstallation } from '../src/daemon/installation.ts'
import { guardedService } from '../src/paths.ts'
import { until } from '../src/until.ts'

/**
 * Everything in one run: a person asks in a topic on Telegram, an agent in bubblewrap asks back with buttons there, what
 * it does after it has read secrets and strangers' words waits for a yes on Slack, and its answer arrives in the topic.
 */
const isInstalled = [telegram, slack].every(kind => findLibrary(layoutOf('/nowhere'), kind) !== undefined)
const missing = !findProgram('bwrap')
  ? 'bwrap'
  : isInstalled
    ? undefined
    : 'the libraries for Telegram and Slack'
const attempt = missing === undefined || process.env.CI === 'true' ? test : test.skip

async function buildAgent(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'hatchway-platforms-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'agent.mjs')
  const input = join(import.meta.dirname, 'platforms', 'agent.process.ts')
  const build = await rolldown({ input, platform: 'node', logLevel: 'warn' })
  await build.write({ file, format: 'esm', codeSplitting: false })
  await build.close()
  return file
}

attempt(
  `what is asked on Telegram is allowed on Slack, and answered in the topic it was asked in${missing ? ` (needs ${missing})` : ''}`,
  async () => {
    const agent = await buildAgent()
    const family = await openTelegram()
    onTestFinished(family.close)
    const office = await openSlack()
    onTestFinished(office.close)
    const installation = await openInstallation({
      sandbox: 'bubblewrap',
      environment: home => {
        const file = join(home, 'hatchway.config.mjs')
        const config = {
          agents: {
            driver: 'command',
            command: ['/opt/hatchway/node', '/workspace/group/agent.mjs'],
            progressMs: 600_000,
          },
          services: { plugins: [guardedService] },
          guard: { approvalMs: 600_000 },
          groups: {
            family: {
              senders: [family.ann.id],
              approvers: [`slack:${office.ann.id}`],
              approvalChat: office.room,
            },
          },
        }
        writeFileSync(file, `export default ${JSON.stringify(config)}`)
        return { HATCHWAY_CONFIG: file, HATCHWAY_RIG_DIR: home }
      },
    })
    const { data, home } = installation
    const request = async (method: 'GET' | 'POST', path: string, body?: object) => {
      const { status, text } = await overSocket(announcedSocket(data)).request(method, path, body)
      expect({ path, status, text }).toMatchObject({ status: method === 'GET' ? 200 : 201 })
      return JSON.parse(text)
    }
    const send = (path: string, body: object) => request('POST', path, body)
    await send('/groups', { folder: 'family', jid: family.room, name: 'Family', requires_trigger: true })
    await send('/groups', { folder: 'office', jid: office.room, name: 'Office', requires_trigger: true })
    await send('/channels', { kind: 'telegram', settings: family.settings })
    await send('/channels', { kind: 'slack', settings: office.settings })
    const folder = join(layoutOf(data).groups, 'family')
    mkdirSync(folder, { recursive: true })
    copyFileSync(agent, join(folder, 'agent.mjs'))
    const published = () => existsSync(join(home, 'done'))
    const ours = async (platform: Platform) =>
      (await platform.shown(platform.room)).filter(({ isOurs }) => isOurs)
    const cardOn = async (platform: Platform) => {
      await until(async () => (await ours(platform)).some(({ buttons }) => buttons?.length))
      const card = (await ours(platform)).find(({ buttons }) => buttons?.length)
      if (!card) throw new Error('there is no card')
      return card
    }

    const asked = await family.say(family.ann, family.room, 'publish the plan', {
      mention: true,
      thread: 'new',
    })
    const topic = (await family.shown(family.room)).find(({ id }) => id === asked)?.thread
    expect(topic).toBeDefined()

    const question = await cardOn(family)
    expect(question).toMatchObject({ text: expect.stringContaining('Which plan?'), thread: topic })
    await family.press(family.stranger, family.room, question.id, 'Short')
    await until(() => family.api.notices.length === 1)
    expect(family.api.notices[0]?.text).toBeDefined()
    await family.press(family.ann, family.room, question.id, 'Long')

    const card = await cardOn(office)
    expect(card.text).toContain('the long plan')
    expect(card.text).toContain('"family"')
    expect(card.thread).toBeUndefined()
    // Whoever looks at that chat in the console sees all of it, too.
    const [waiting] = approvalsAnswer.parse(await request('GET', '/approvals'))
    const whole = await request('GET', `/api/chats/${office.room}/approvals/${waiting?.id}`)
    expect(whole).toMatchObject({ id: waiting?.id })
    await office.press(office.stranger, office.room, card.id, 'Allow')
    await until(() => office.api.notices.length === 1)
    expect(office.api.notices).toMatchObject([
      { user: office.stranger.id, text: expect.stringContaining('may not decide') },
    ])
    expect((await cardOn(office)).buttons).toEqual(card.buttons)
    expect(published()).toBe(false)
    await office.press(office.ann, office.room, card.id, 'Allow')

    await until(async () => (await ours(family)).some(({ text }) => text === 'The plan is out.'))
    expect(readFileSync(join(home, 'done'), 'utf8')).toMatch(/^publish \S+ the long plan\n$/)
    // All of it is in the topic, and nothing of what was decided on Slack.
    expect((await ours(family)).map(({ text, thread }) => [text, thread])).toEqual([
      [expect.stringContaining('Long ('), topic],
      ['The plan is out.', topic],
    ])
    await until(async () => (await ours(office)).every(({ buttons }) => !buttons?.length))
    expect(await ours(office)).toHaveLength(1)
    expect((await installation.runs('family')).map(({ sandbox }) => sandbox)).toEqual(['bubblewrap'])
  },
)
