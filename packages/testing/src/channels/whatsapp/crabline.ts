import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { openSession } from '../../../../host/src/plugins/channels/whatsapp/session.ts'
import { loadBaileys } from './library.ts'

/** What of it is used here: it need not be installed for the check. */
interface Crabline {
  startWhatsAppServer(options: { recorderPath: string; selfJid: string }): Promise<{
    manifest: { adminToken: string; endpoints: { adminInboundUrl: string; baileysWebSocketUrl: string } }
    close(): Promise<void>
  }>
}

const entry = join(
  ...[
    import.meta.dirname,
    '..',
    'crabline',
    'node_modules',
    '@openclaw',
    'crabline',
    'dist',
    'src',
    'index.js',
  ],
)
export const missingCrabline = existsSync(entry) ? undefined : '@openclaw/crabline'

const ourselves = '491700000100'

/** A server by another project, with WhatsApp's real certificates. It links no devices: the keys are put there by hand. */
export async function openCrabline() {
  const { startWhatsAppServer }: Crabline = await import(pathToFileURL(entry).href)
  const place = mkdtempSync(join(tmpdir(), 'hatchway-crabline-'))
  const recorderPath = join(place, 'events.jsonl')
  const { manifest, close } = await startWhatsAppServer({
    recorderPath,
    selfJid: `${ourselves}@s.whatsapp.net`,
  })
  const { endpoints, adminToken } = manifest
  return {
    settings: { server: endpoints.baileysWebSocketUrl },
    place,
    async link() {
      const session = openSession(place, await loadBaileys())
      const none = Buffer.alloc(0)
      Object.assign(session.state.creds, {
        me: { id: `${ourselves}:1@s.whatsapp.net`, name: 'Hatch' },
        account: { details: none, accountSignatureKey: none, accountSignature: none, deviceSignature: none },
      })
      session.saveCredentials()
      session.close()
    },
    /** Unlike WhatsApp, it sends what people say as it is. */
    async say(by: string, text: string) {
      const chatJid = `${by}@s.whatsapp.net`
      const response = await fetch(endpoints.adminInboundUrl, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-crabline-admin-token': adminToken },
        body: JSON.stringify({ chatJid, senderJid: chatJid, text }),
      })
      if (!response.ok) throw new Error(await response.text())
    },
    /** every event that it has written down, one in a line */
    events: (): string => (existsSync(recorderPath) ? readFileSync(recorderPath, 'utf8') : ''),
    async close() {
      await close()
      rmSync(place, { recursive: true, force: true })
    },
  }
}
