import { channelContract } from '../../../../../testing/src/channels/contract.ts'
import { openSlack } from '../../../../../testing/src/channels/slack/platform.ts'
import { slack } from './kind.ts'

channelContract({ kind: slack, open: openSlack })
