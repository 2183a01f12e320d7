import type { DialectName } from '@hatchway/protocol'
import { mdclaw, nanoclaw, novabot, pynchy } from './foreign.ts'
import { hatchway } from './hatchway.ts'
import type { Framing } from './types.ts'

export const framings: Record<DialectName, Framing> = { hatchway, nanoclaw, novabot, mdclaw, pynchy }
