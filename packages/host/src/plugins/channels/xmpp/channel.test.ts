import { channelContract } from '../../../../../testing/src/channels/contract.ts'
import { openXmpp } from '../../../../../testing/src/channels/xmpp/platform.ts'
import { isProsodyMissing } from '../../../../../testing/src/channels/xmpp/prosody.ts'
import { xmpp } from './kind.ts'

const missing = isProsodyMissing() ? 'prosody' : undefined
channelContract({ kind: xmpp, open: openXmpp, missing })
