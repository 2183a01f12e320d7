import { describe, expect, test } from 'vitest'
import { channelContract } from '../../../../../testing/src/channels/contract.ts'
import { openWhatsApp } from '../../../../../testing/src/channels/whatsapp/platform.ts'
import { optionsFor } from '../../../../../testing/src/channels/whatsapp/rig.ts'
import { check } from './channel.ts'
import { whatsapp } from './kind.ts'
import { whatsappSettings } from './settings.ts'

channelContract({ kind: whatsapp, open: openWhatsApp })

describe('The settings of WhatsApp', () => {
  test('take a number as people write it, and say what is wrong with another', () => {
    expect(whatsappSettings.parse({ phone: '+49 (170) 123-4567', own: 'Yes' })).toMatchObject({
      phone: '491701234567',
      own: true,
    })
    expect(whatsappSettings.parse({})).toMatchObject({ own: false, server: 'wss://web.whatsapp.com/ws/chat' })
    const wrong = (given: object) => whatsappSettings.safeParse(given).error?.issues[0]?.message
    expect(wrong({ phone: '0170 1234567' })).toContain('country code')
    expect(wrong({ own: 'maybe' })).toContain('neither yes nor no')
  })

  test('are tried: a server that is not there is said', async () => {
    const platform = await openWhatsApp()
    await platform.close()
    expect(await check(optionsFor(platform.settings)).catch(String)).toContain('WhatsApp cannot be reached: ')
  })
})
