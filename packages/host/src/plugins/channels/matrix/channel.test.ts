import { afterAll } from 'vitest'
import { channelContract } from '../../../../../testing/src/channels/contract.ts'
import {
  type MatrixWorld,
  openMatrix,
  openWorld,
} from '../../../../../testing/src/channels/matrix/platform.ts'
import { missingSynapse } from '../../../../../testing/src/channels/matrix/synapse.ts'
import { matrix } from './kind.ts'

let opened: Promise<MatrixWorld> | undefined
const theWorld = () => {
  opened ??= openWorld()
  return opened
}
afterAll(async () => (await opened)?.close())

channelContract({ kind: matrix, open: async () => openMatrix(await theWorld()), missing: missingSynapse() })
