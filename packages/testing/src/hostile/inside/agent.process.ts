import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { places } from './attack.ts'
import { openLedger } from './ledger.ts'
import { goodAnswer, goodWord, ordersIn } from './orders.ts'

/** The hostile agent: it reads its prompt as any agent does, is good if it is asked to be, and else does its worst. */
let prompt = ''
for await (const chunk of process.stdin.setEncoding('utf8')) prompt += chunk
const orders = ordersIn(prompt)
if (orders === undefined) {
  console.log(prompt.includes(goodWord) ? goodAnswer : 'What is it?')
} else {
  const { turn, attacks, seconds, seed } = orders
  const name = `turn-${turn}`
  const ledger = openLedger(places.group, 'agent')
  // A turn that has killed its run is given to the next one: once is enough.
  if (!ledger.hasBegun(turn)) {
    const own = openLedger(places.group, name)
    own.write({ kind: 'began', turn, attack: '' })
    await Promise.all(
      attacks.map(async (attack, n) => {
        const args = [
          join(import.meta.dirname, 'attack.process.ts'),
          attack,
          ...[turn, seed + n, seconds].map(String),
        ]
        const child = spawn(process.execPath, args, { stdio: ['ignore', 'inherit', 'inherit'] })
        child.on('error', () => {})
        await Promise.race([once(child, 'exit'), once(child, 'error').catch(() => {})])
      }),
    )
    own.write({ kind: 'ended', turn, attack: '' })
  }
  console.log(`\u001b[2J\u001b]0;owned\u0007turn ${turn} is over <script>alert(1)</script> \u202e\u200b`)
}
