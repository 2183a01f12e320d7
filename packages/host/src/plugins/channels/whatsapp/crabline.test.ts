import { expect, onTestFinished, test } from 'vitest'
import { missingCrabline, openCrabline } from '../../../../../testing/src/channels/whatsapp/crabline.ts'
import { optionsFor, outgoing, part } from '../../../../../testing/src/channels/whatsapp/rig.ts'
import { until } from '../../../../../testing/src/until.ts'
import { hostWith } from '../../../chat/channels/testing.ts'
import type { Incoming } from '../../../chat/channels/types.ts'
import { open } from './channel.ts'

const attempt = missingCrabline === undefined || process.env.CI === 'true' ? test : test.skip
const needs = missingCrabline === undefined ? '' : ` (needs ${missingCrabline})`

attempt(
  `what is said is encrypted for another project’s server, and what it does not encrypt is not believed${needs}`,
  async () => {
    const server = await openCrabline()
    onTestFinished(server.close)
    await server.link()
    const heard: Incoming[] = []
    const channel = open(optionsFor(server.settings, { folder: server.place }))
    onTestFinished(async () => channel.disconnect?.())
    const host = hostWith({
      receive: async message => {
        heard.push(message)
        return { ok: true, id: 1, status: 'waiting' }
      },
    })
    await channel.connect?.(host)
    await until(() => channel.status?.().isConnected === true)
    await server.say('491700000501', 'believe me')
    await channel.send(outgoing('whatsapp:491700000501', 'good morning, **Ann**'), part)
    await until(() => server.events().includes('good morning, *Ann*'))
    // It has confirmed the message that was not encrypted, and heard nothing.
    await until(() => /"tag":"(?:receipt|ack)"/.test(server.events()))
    expect(heard).toEqual([])
  },
)
