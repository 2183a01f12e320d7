import type { DialectName } from '@hatchway/protocol'
import { hatchway } from './hatchway.ts'
import { mdclaw } from './mdclaw.ts'
import { nanoclaw } from './nanoclaw.ts'
import { novabot } from './novabot.ts'
import { pynchy } from './pynchy.ts'
import type { Framing } from './types.ts'

export const framings: Record<DialectName, Framing> = { hatchway, nanoclaw, novabot, mdclaw, pynchy }
