import { expect, onTestFinished, test } from 'vitest'
import { announcedSocket } from '../../host/src/api/socket.ts'
import { layoutOf } from '../../host/src/base/layout.ts'
import { overSocket } from '../../host/src/client/over-socket.ts'
import { findLibrary } from '../../host/src/plugins/channels/library.ts'
import { telegram } from '../../host/src/plugins/channels/telegram/kind.ts'
import { openStore } from '../../host/src/store/sqlite.ts'
import { openTelegram } from '../src/channels/telegram/platform.ts'
import { openInstallation } from '../src/daemon/installation.ts'
import { until } from '../src/until.ts'

/**
 * A daemon with Telegram, as people run it, that is killed twice in the middle of what people say: none of it is lost,
 * none is stored twice, and the concierge answers.
 */
const missing = findLibrary(layoutOf('/nowhere'), telegram) === undefined ? 'grammy' : undefined
const attempt = missing === undefined || process.env.CI === 'true' ? test : test.skip

const chats = 10
const messages = 200

attempt(
  `a killed daemon loses nothing that was said on Telegram${missing ? ` (needs ${missing})` : ''}`,
  async () => {
    const platform = await openTelegram()
    onTestFinished(platform.close)
    const { world } = platform.api
    const people = Array.from({ length: chats }, (_, i) => ({ id: String(601 + i), name: `Person ${i}` }))
    for (const { id, name } of people)
      world.addRoom({ id: Number(id), type: 'private', first_name: name }, [platform.bot])
    const installation = await openInstallation({ sandbox: 'process' })
    const send = async (path: string, body: object) => {
      const { status, text } = await overSocket(announcedSocket(installation.data)).request(
        'POST',
        path,
        body,
      )
      expect({ path, status, text }).toMatchObject({ status: 201 })
      return text
    }
    for (const { id, name } of people)
      await send('/groups', { folder: `p${id}`, jid: `telegram:${id}`, name, requires_trigger: false })
    const added = await send('/channels', { kind: 'telegram', settings: platform.settings })
    expect(JSON.parse(added)).toMatchObject({ as: expect.stringContaining('@hatch_bot') })

    const all = Array.from({ length: messages }, (_, number) => ({
      number,
      by: people[number % chats] ?? platform.ann,
      text: `thanks ${number}`,
    }))
    const say = async (from: number, to: number) => {
      for (const { by, text } of all.slice(from, to)) await platform.say(by, `telegram:${by.id}`, text)
    }
    const isTaken = (count: number) => until(() => platform.bot.confirmed.length >= count)
    /** Telegram still has some of it, and the daemon has some of it. */
    const killInTheMiddle = async () => {
      expect(platform.bot.updates.length).toBeGreaterThan(0)
      await installation.daemon()?.kill()
      await installation.up()
    }
    await say(0, 40)
    await isTaken(1)
    await say(40, 120)
    await killInTheMiddle()
    await isTaken(60)
    await say(120, messages)
    await killInTheMiddle()
    await isTaken(messages)
    // Telegram gives all of it once more.
    await platform.repeat()
    await isTaken(messages)

    const answers = async (id: string) =>
      (await platform.shown(`telegram:${id}`)).filter(
        ({ isOurs, text }) => isOurs && text.includes('welcome'),
      )
    for (const { id } of people) await until(async () => (await answers(id)).length > 0)
    await installation.daemon()?.stop()

    const { database } = layoutOf(installation.data)
    const store = openStore({ path: database, durability: 'process', prepare: false })
    onTestFinished(() => store.close())
    const stored = store.agents.incoming({}).filter(({ channel }) => channel === 'telegram')
    for (const { id } of people) {
      const said = all.filter(({ by }) => by.id === id).map(({ text }) => text)
      const here = stored.filter(({ jid }) => jid === `telegram:${id}`)
      expect(here.map(({ text }) => text)).toEqual(said)
      expect(here.every(({ sender }) => sender === id)).toBe(true)
    }
    expect(stored).toHaveLength(messages)
  },
)
