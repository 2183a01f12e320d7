import { setTimeout as sleep } from 'node:timers/promises'
import { createRandom } from '../../random.ts'
import { type Attack, createAttack, places } from './attack.ts'
import { model, signals, ways } from './escape.ts'
import { bytes, descriptors, flood, inodes, memory, output, processes, watches } from './exhaustion.ts'
import { files } from './files.ts'
import { openLedger } from './ledger.ts'
import { answers, decisions, documents, events, forgeries, fuzz, replays, text } from './protocol.ts'
import { races } from './races.ts'

/**
 * One attack, in a process of its own:
 *
 *   node attack.process.ts NAME TURN SEED SECONDS
 */
const attacks: Record<string, (attack: Attack) => Promise<void>> = {
  decisions,
  fuzz,
  documents,
  text,
  replays,
  forgeries,
  events,
  answers,
  files,
  races,
  escape: ways,
  signals,
  model,
  memory,
  processes,
  bytes,
  inodes,
  descriptors,
  watches,
  output,
  flood,
}

const [name = '', turn = '0', seed = '0', seconds = '1'] = process.argv.slice(2)
const ledger = openLedger(places.group, `${turn}-${name}`)
ledger.write({ kind: 'began', turn: Number(turn), attack: name })
const attack = createAttack({
  random: createRandom(Number(seed)),
  ledger,
  name,
  turn: Number(turn),
  deadline: Date.now() + 1000 * Number(seconds),
})
/** What goes on at the same time has the same mounts, and gets into each other's way: one that stumbles begins again. */
const patience = 100
for (let stumbles = 1; stumbles <= patience; stumbles++) {
  try {
    await attacks[name]?.(attack)
    break
  } catch (error) {
    if (attack.isOver()) break
    const reason = error instanceof Error ? `${error.stack}` : String(error)
    if (stumbles === patience) ledger.write({ kind: 'failed', attack: name, reason })
    await sleep(10)
  }
}
ledger.write({ kind: 'ended', turn: Number(turn), attack: name })
process.exit(0)
