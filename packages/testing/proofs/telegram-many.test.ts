import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createNames, post } from '@hatchway/spool'
import { expect, onTestFinished, test } from 'vitest'
import { messagesAnswer } from '../../host/src/api/answers.ts'
import { announcedSocket } from '../../host/src/api/socket.ts'
import { layoutOf } from '../../host/src/base/layout.ts'
import { overSocket } from '../../host/src/client/over-socket.ts'
import { findLibrary } from '../../host/src/plugins/channels/library.ts'
import { telegram } from '../../host/src/plugins/channels/telegram/kind.ts'
import { openStore } from '../../host/src/store/sqlite.ts'
import { openTelegram } from '../src/channels/telegram/platform.ts'
import { openInstallation } from '../src/daemon/installation.ts'
import { median } from '../src/soak/flatness.ts'
import { until } from '../src/until.ts'

/**
 * Many messages through many chats on Telegram, as many from people as from agents, through a daemon that is killed once
 * and a Telegram that is away once. The whole is `HATCHWAY_MESSAGES=10000`; `npm test` does a short form.
 *
 * Telegram takes no key for what it is sent. So it is unavoidable that a message is shown twice which Telegram had taken
 * when the daemon was killed before it could note that, or whose answer was lost with the line; these are counted, and
 * nothing else may be shown twice.
 */
const missing = findLibrary(layoutOf('/nowhere'), telegram) === undefined ? 'grammy' : undefined
const attempt = missing === undefined || process.env.CI === 'true' ? test : test.skip

/** in each direction */
const messages = Number(process.env.HATCHWAY_MESSAGES ?? 600)
const isWhole = messages >= 10_000
const chats = isWhole ? 50 : 20
const waves = 40
/** The killed daemon's successor carries all that memory is compared of. */
const killedIn = waves / 4 - 1
const awayIn = waves / 2
/** of the last quarter's resident memory to the second's; a short run is still filling its caches */
const mostGrowth = isWhole ? 1.25 : 1.5
const longestMs = 900_000

attempt(
  `${messages} messages each way in ${chats} chats on Telegram survive a kill and an absence${missing ? ` (needs ${missing})` : ''}`,
  async () => {
    const platform = await openTelegram()
    onTestFinished(platform.close)
    const { world } = platform.api
    const people = Array.from({ length: chats }, (_, i) => ({ id: String(601 + i), name: `Person ${i}` }))
    const personOf = (number: number) => people[number % chats] ?? platform.ann
    const jidOf = ({ id }: { id: string }) => `telegram:${id}`
    for (const { id, name } of people)
      world.addRoom({ id: Number(id), type: 'private', first_name: name }, [platform.bot])

    const installation = await openInstallation({ sandbox: 'process' })
    const { data } = installation
    const request = async (method: 'GET' | 'POST', path: string, body?: object) => {
      const { status, text } = await overSocket(announcedSocket(data)).request(method, path, body)
      expect({ path, status, text }).toMatchObject({ status: method === 'GET' ? 200 : 201 })
      return JSON.parse(text)
    }
    for (const person of people)
      await request('POST', '/groups', {
        folder: `p${person.id}`,
        jid: jidOf(person),
        name: person.name,
        // Nobody calls an agent: what agents say here is posted as they would post it.
        requires_trigger: true,
      })
    await request('POST', '/channels', { kind: 'telegram', settings: platform.settings })

    const names = createNames()
    const say = async (number: number) => {
      const person = personOf(number)
      await platform.say(person, jidOf(person), `said ${number}`)
      const payload = { jid: jidOf(person), text: `answer ${number}` }
      post(
        join(layoutOf(data).ipc, `p${person.id}`, 'messages'),
        JSON.stringify({ version: 1, id: `r${number}`, type: 'send_message', payload }),
        { name: names() },
      )
    }
    const shownTo = (person: { id: string }) =>
      (world.rooms.get(Number(person.id))?.messages ?? []).flatMap(({ from, text }) =>
        from.is_bot && text !== undefined ? [text] : [],
      )
    const shown = () => new Set(people.flatMap(shownTo))

    /** what may be shown twice */
    const afterKill = new Set<string>()
    const afterAbsence = new Set<string>()
    const kill = async (sayTheRest: () => Promise<void>) => {
      await Promise.all([installation.daemon()?.kill(), sayTheRest()])
      const store = openStore({ path: layoutOf(data).database, durability: 'process', prepare: false })
      const pending = store.messages({ status: 'pending' })
      store.close()
      const taken = shown()
      for (const { text } of pending) if (taken.has(text)) afterKill.add(text)
      await installation.up()
    }
    const goAway = async (sayTheRest: () => Promise<void>) => {
      await platform.down()
      const taken = shown()
      await sayTheRest()
      const undelivered = async () =>
        messagesAnswer.parse(await request('GET', '/messages?status=pending&limit=2000'))
      // Those under way have ended one way or the other: only what is known not to have arrived is tried again.
      await until(async () => {
        const pending = await undelivered()
        const isSettled = pending.every(({ text, error }) => error !== null || !taken.has(text))
        if (isSettled && pending.some(({ error }) => error !== null)) {
          for (const { text } of pending) if (taken.has(text)) afterAbsence.add(text)
          return true
        }
        return false
      })
      await platform.up()
    }

    const memory: number[] = []
    const rss = () => {
      const status = readFileSync(`/proc/${installation.daemon()?.pid}/status`, 'utf8')
      return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1024
    }
    const sayFrom = async (begin: number, end: number) => {
      for (let number = begin; number < end; number++) await say(number)
    }
    for (let wave = 0; wave < waves; wave++) {
      const begin = Math.floor((messages * wave) / waves)
      const end = Math.floor((messages * (wave + 1)) / waves)
      const middle = Math.floor((begin + end) / 2)
      await sayFrom(begin, middle)
      const interrupt = wave === killedIn ? kill : wave === awayIn ? goAway : undefined
      if (interrupt) {
        await until(() => shown().size > begin)
        await interrupt(() => sayFrom(middle, end))
      } else await sayFrom(middle, end)
      await until(() => platform.bot.updates.length === 0 && shown().size >= end)
      memory.push(rss())
    }
    // Telegram gives all of it once more.
    await platform.repeat()
    await until(() => platform.bot.updates.length === 0)
    await until(async () => (await request('GET', '/messages?status=pending&limit=1')).length === 0)
    await installation.daemon()?.stop()

    const store = openStore({ path: layoutOf(data).database, durability: 'process', prepare: false })
    onTestFinished(() => store.close())
    const stored = store.agents.incoming({}).filter(({ channel }) => channel === 'telegram')
    const unavoidable = new Set([...afterKill, ...afterAbsence])
    const doubled: string[] = []
    for (const [index, person] of people.entries()) {
      const numbers = Array.from({ length: messages }, (_, i) => i).filter(i => i % chats === index)
      const heard = stored.filter(({ jid }) => jid === jidOf(person)).map(({ text }) => text)
      expect(heard).toEqual(numbers.map(number => `said ${number}`))
      const texts = shownTo(person)
      // A Set keeps the order in which they came first.
      expect([...new Set(texts)]).toEqual(numbers.map(number => `answer ${number}`))
      doubled.push(...texts.filter((text, i) => texts.indexOf(text) !== i))
    }
    expect(stored).toHaveLength(messages)
    expect(new Set(doubled).size).toBe(doubled.length)
    expect(doubled.filter(text => !unavoidable.has(text))).toEqual([])

    const quarter = (number: number) => median(memory.slice((waves * number) / 4, (waves * (number + 1)) / 4))
    const growth = quarter(3) / quarter(1)
    console.log(
      `${messages} each way in ${chats} chats: none lost; ${doubled.length} shown twice, of ${afterKill.size} taken when ` +
        `the daemon was killed and ${afterAbsence.size} whose answer was lost with the line; ` +
        `memory ${quarter(1).toFixed(0)} → ${quarter(3).toFixed(0)} MB (${growth.toFixed(2)} ×)`,
    )
    expect(growth).toBeLessThan(mostGrowth)
  },
  longestMs,
)
