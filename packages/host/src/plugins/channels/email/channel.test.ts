import { afterAll } from 'vitest'
import { channelContract } from '../../../../../testing/src/channels/contract.ts'
import { openEmail } from '../../../../../testing/src/channels/email/platform.ts'
import {
  type MailServers,
  missingForMail,
  startMail,
} from '../../../../../testing/src/channels/email/servers.ts'
import { email } from './kind.ts'

let started: Promise<MailServers> | undefined
const servers = () => {
  started ??= startMail()
  return started
}
afterAll(async () => (await started)?.close())

channelContract({ kind: email, open: async () => openEmail(await servers()), missing: missingForMail() })
