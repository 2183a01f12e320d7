import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createNames, post } from '@hatchway/spool'
import { expect, onTestFinished, test } from 'vitest'
import { channelsAnswer, messagesAnswer } from '../../host/src/api/answers.ts'
import { entriesAnswer } from '../../host/src/api/chat-answers.ts'
import { announcedSocket } from '../../host/src/api/socket.ts'
import { layoutOf } from '../../host/src/base/layout.ts'
import { overSocket } from '../../host/src/client/over-socket.ts'
import type { ChannelKind } from '../../host/src/plugins/channels/kind.ts'
import { kindOf, kinds } from '../../host/src/plugins/channels/kinds.ts'
import { findLibrary } from '../../host/src/plugins/channels/library.ts'
import { openStore } from '../../host/src/store/sqlite.ts'
import { missingForMail, startMail } from '../src/channels/email/servers.ts'
import { isNgircdMissing } from '../src/channels/irc/ngircd.ts'
import { missingSynapse } from '../src/channels/matrix/synapse.ts'
import type { Chat, Platform } from '../src/channels/platform.ts'
import { isProsodyMissing } from '../src/channels/xmpp/prosody.ts'
import { openInstallation } from '../src/daemon/installation.ts'
import { median } from '../src/soak/flatness.ts'
import { until } from '../src/until.ts'

/**
 * Many messages through many chats, as many from people as from agents, through a daemon that is killed once and a platform
 * that is away once. `HATCHWAY_CHANNELS=all` tries every platform, `HATCHWAY_CHANNELS=slack,irc` these; left out: Telegram.
 * The whole is `HATCHWAY_MESSAGES=10000`; `npm test` does a short form.
 *
 * Most platforms take a key for what they are sent, and show it once. On the others it is unavoidable that a message is shown
 * twice that was under way when the daemon was killed or the line was lost: the first of each chat that had not been noted as
 * sent. These are counted, and nothing else may be shown twice.
 */
const platforms: Record<string, { missing?: string | undefined; open(): Promise<Platform> }> = {
  telegram: { open: async () => (await import('../src/channels/telegram/platform.ts')).openTelegram() },
  whatsapp: { open: async () => (await import('../src/channels/whatsapp/platform.ts')).openWhatsApp() },
  slack: { open: async () => (await import('../src/channels/slack/platform.ts')).openSlack() },
  discord: { open: async () => (await import('../src/channels/discord/platform.ts')).openDiscord() },
  matrix: {
    missing: missingSynapse(),
    async open() {
      const { openMatrix, openWorld } = await import('../src/channels/matrix/platform.ts')
      const world = await openWorld()
      onTestFinished(world.close)
      return openMatrix(world)
    },
  },
  email: {
    missing: missingForMail(),
    async open() {
      const servers = await startMail()
      onTestFinished(servers.close)
      return (await import('../src/channels/email/platform.ts')).openEmail(servers)
    },
  },
  xmpp: {
    missing: isProsodyMissing() ? 'prosody' : undefined,
    open: async () => (await import('../src/channels/xmpp/platform.ts')).openXmpp(),
  },
  irc: {
    missing: isNgircdMissing() ? 'ngircd' : undefined,
    open: async () => (await import('../src/channels/irc/platform.ts')).openIrc(),
  },
}

const chosen = process.env.HATCHWAY_CHANNELS ?? 'telegram'
/** in each direction */
const messages = Number(process.env.HATCHWAY_MESSAGES ?? 600)
const isWhole = messages >= 10_000
const chats = isWhole ? 50 : 20
const waves = 20
/** The killed daemon's successor carries all that memory is compared of. */
const killedIn = waves / 4 - 1
const awayIn = waves / 2
/** of the last quarter's resident memory to the second's; a short run is still filling its caches */
const mostGrowth = isWhole ? 1.25 : 1.5
const longestMs = 3_600_000
/** a real server takes its time for a wave */
const waveMs = 600_000

for (const name of chosen === 'all' ? kinds.map(kind => kind.name) : chosen.split(',')) {
  const kind = kindOf(name)
  const platform = platforms[name]
  if (!kind || !platform)
    throw new Error(
      `HATCHWAY_CHANNELS: there is no ${name}. There are: all, ${Object.keys(platforms).join(', ')}.`,
    )
  const isInstalled = findLibrary(layoutOf('/nowhere'), kind) !== undefined
  const missing = platform.missing ?? (isInstalled ? undefined : kind.library?.join(', '))
  const attempt = missing === undefined || process.env.CI === 'true' ? test : test.skip
  attempt(
    `${messages} messages each way in ${chats} chats on ${kind.title} survive a kill and an absence${missing ? ` (needs ${missing})` : ''}`,
    async () => prove(kind, await platform.open()),
    longestMs,
  )
}

async function prove(kind: ChannelKind, platform: Platform) {
  onTestFinished(platform.close)
  const people: Chat[] = []
  for (let i = 0; i < chats; i++) {
    const made = await platform.another?.(i)
    if (!made) throw new Error(`${kind.title} has no other chats`)
    people.push(made)
  }
  const installation = await openInstallation({ sandbox: 'process' })
  const { data } = installation
  const request = async (method: 'GET' | 'POST', path: string, body?: object) => {
    const { status, text } = await overSocket(announcedSocket(data)).request(method, path, body)
    expect({ path, status, text }).toMatchObject({ status: method === 'GET' ? 200 : 201 })
    return JSON.parse(text)
  }
  // Nobody calls an agent: what agents say here is posted as they would post it.
  for (const [index, { person, jid }] of people.entries())
    await request('POST', '/groups', { folder: `p${index}`, jid, name: person.name, requires_trigger: true })
  await request('POST', '/channels', { kind: kind.name, settings: platform.settings })
  const connected = () =>
    until(`${kind.title} is connected`, async () => {
      const all = channelsAnswer.parse(await request('GET', '/channels'))
      const channel = all.find(one => one.name === kind.name)
      if (channel?.confirm) await platform.confirm?.(channel.confirm)
      return channel?.connected === true
    })
  await connected()

  /** What belongs to one chat, of all numbers from `begin` to `end`. */
  const numbersOf = (index: number, begin: number, end: number) =>
    Array.from({ length: Math.max(0, end - begin) }, (_, i) => begin + i).filter(i => i % chats === index)
  /** People do not wait for each other. */
  const sayFrom = async (begin: number, end: number) => {
    await Promise.all(
      people.map(async ({ person, jid }, index) => {
        for (const number of numbersOf(index, begin, end)) await platform.say(person, jid, `said ${number}`)
      }),
    )
  }
  const names = createNames()
  const answerFrom = (begin: number, end: number) => {
    for (let number = begin; number < end; number++) {
      const index = number % chats
      const payload = { jid: people[index]?.jid, text: `answer ${number}` }
      post(
        join(layoutOf(data).ipc, `p${index}`, 'messages'),
        JSON.stringify({ version: 1, id: `r${number}`, type: 'send_message', payload }),
        { name: names() },
      )
    }
  }
  /** The last that was said in each chat is stored, and the last answer in it is sent. */
  const settled = async (said: number, answered: number) => {
    for (const [index, { jid }] of people.entries()) {
      const last = numbersOf(index, said - chats, said).at(-1) ?? -1
      const answer = numbersOf(index, answered - chats, answered).at(-1) ?? -1
      const path = `/api/chats/${encodeURIComponent(jid)}/messages?limit=1000`
      await until(
        `${jid} has "said ${last}" and "answer ${answer}"`,
        async () => {
          const { entries } = entriesAnswer.parse(await request('GET', path))
          const has = (text: string) =>
            entries.some(entry => entry.text === text && entry.status !== 'pending')
          return (last < 0 || has(`said ${last}`)) && (answer < 0 || has(`answer ${answer}`))
        },
        waveMs,
      )
    }
  }

  /** The first message of each chat that is not noted as sent: it may be under way. */
  const underWay = <Row extends { jid: string }>(pending: readonly Row[]) =>
    [...Map.groupBy(pending, ({ jid }) => jid).values()].flatMap(([first]) => first ?? [])
  const unavoidable = new Set<string>()
  const mayRepeat = (rows: readonly { text: string }[]) => {
    if (!platform.dropsRepeats) for (const { text } of rows) unavoidable.add(text)
  }
  const isHeardLater = kind.does.includes('absence')
  const kill = async (begin: number, end: number) => {
    // What nobody hears is lost where the platform keeps nothing.
    if (!isHeardLater) await settled(begin, 0)
    await installation.daemon()?.kill()
    if (isHeardLater) await sayFrom(begin, end)
    const store = openStore({ path: layoutOf(data).database, durability: 'process', prepare: false })
    mayRepeat(underWay(store.messages({ status: 'pending' })))
    store.close()
    await installation.up()
    if (isHeardLater) return
    await connected()
    await sayFrom(begin, end)
  }
  const goAway = async (begin: number, end: number) => {
    if (!isHeardLater) await settled(begin, 0)
    const pending = async () =>
      messagesAnswer.parse(await request('GET', '/messages?status=pending&limit=2000'))
    await platform.down()
    mayRepeat(underWay(await pending()))
    answerFrom(begin, end)
    if (!platform.isDownForAll) await sayFrom(begin, end)
    // Those under way have ended one way or the other: only what is known not to have arrived is tried again.
    await until(`${kind.title} is missed`, async () => {
      const first = underWay(await pending())
      return first.length > 0 && first.every(({ error }) => error !== null)
    })
    await platform.up()
    if (!isHeardLater) await connected()
    if (platform.isDownForAll) await sayFrom(begin, end)
  }
  const sayTheRest = async (begin: number, end: number) => {
    answerFrom(begin, end)
    await sayFrom(begin, end)
  }
  /** Some of this wave's answers have been sent. */
  const isDelivering = (begin: number) =>
    until('answers are being sent', async () => {
      const sent = messagesAnswer.parse(await request('GET', '/messages?status=sent&last=1'))
      return sent.some(({ text }) => Number(text.replace('answer ', '')) >= begin)
    })

  const memory: number[] = []
  const rss = () => {
    const status = readFileSync(`/proc/${installation.daemon()?.pid}/status`, 'utf8')
    return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1024
  }
  for (let wave = 0; wave < waves; wave++) {
    const begin = Math.floor((messages * wave) / waves)
    const end = Math.floor((messages * (wave + 1)) / waves)
    const middle = Math.floor((begin + end) / 2)
    await sayFrom(begin, middle)
    // The daemon is killed while it has much to do.
    answerFrom(begin, wave === killedIn ? end : middle)
    const interrupt = wave === killedIn ? kill : wave === awayIn ? goAway : undefined
    if (interrupt) await isDelivering(begin)
    await (interrupt ?? sayTheRest)(middle, end)
    await settled(end, end)
    memory.push(rss())
  }
  // The platform gives all of it once more. What comes after that is stored after it.
  await platform.repeat?.()
  const all = messages + 2 * chats
  for (let said = messages; said < all; said += chats) {
    await sayFrom(said, said + chats)
    await settled(said + chats, messages)
  }
  await installation.daemon()?.stop()

  const store = openStore({ path: layoutOf(data).database, durability: 'process', prepare: false })
  onTestFinished(() => store.close())
  const stored = store.agents.incoming({}).filter(({ channel }) => channel === kind.name)
  const doubled: string[] = []
  for (const [index, { jid }] of people.entries()) {
    const heard = stored.filter(one => one.jid === jid).map(({ text }) => text)
    expect(heard).toEqual(numbersOf(index, 0, all).map(number => `said ${number}`))
    const texts = (await platform.shown(jid)).flatMap(({ isOurs, text }) => (isOurs ? [text] : []))
    // A Set keeps the order in which they came first.
    expect([...new Set(texts)]).toEqual(numbersOf(index, 0, messages).map(number => `answer ${number}`))
    doubled.push(...texts.filter((text, i) => texts.indexOf(text) !== i))
  }
  expect(stored).toHaveLength(all)
  expect(new Set(doubled).size).toBe(doubled.length)
  expect(doubled.filter(text => !unavoidable.has(text))).toEqual([])

  const quarter = (number: number) => median(memory.slice((waves * number) / 4, (waves * (number + 1)) / 4))
  const growth = quarter(3) / quarter(1)
  console.log(
    `${kind.title}, ${messages} each way in ${chats} chats: none lost; ${doubled.length} shown twice, of ` +
      `${unavoidable.size} that may have been under way; ` +
      `memory ${quarter(1).toFixed(0)} → ${quarter(3).toFixed(0)} MB (${growth.toFixed(2)} ×)`,
  )
  expect(growth).toBeLessThan(mostGrowth)
}
