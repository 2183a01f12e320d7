import type { DialectName } from '@hatchway/protocol'
import { hatchway } from './hatchway.ts'
import { mdclaw } from './mdclaw.ts'
import { nanoclaw } from './nanoclaw.ts'
import { novabot } from './novabot.ts'
import { pynchy } from './pynchy.ts'
import type { ContainerProtocol } from './types.ts'

export const containerProtocols: Record<DialectName, ContainerProtocol> = {
  hatchway,
  nanoclaw,
  novabot,
  mdclaw,
  pynchy,
}
