import { channelContract } from '../../../../testing/src/channels/contract.ts'
import { openWeb, webChat } from '../../../../testing/src/channels/web/platform.ts'

channelContract({ kind: webChat, does: ['buttons', 'files', 'typing'], open: openWeb })
