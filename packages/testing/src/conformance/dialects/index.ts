import { fork } from './fork.ts'
import { hatchway } from './hatchway.ts'
import { mdclaw } from './mdclaw.ts'
import { nanoclaw } from './nanoclaw.ts'
import { novabot } from './novabot.ts'
import { novabotDocument } from './novabot-document.ts'
import { pynchy } from './pynchy.ts'
import type { Column } from './types.ts'

export const columns: readonly Column[] = [nanoclaw, fork, novabot, novabotDocument, mdclaw, pynchy, hatchway]
export type { Column }
