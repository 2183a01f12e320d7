import type { Kit } from './kit.ts'

/** What it says with its tools; whether it was said is seen from outside. */
export async function sendMessages(kit: Kit): Promise<void> {
  const { folder } = kit.who
  kit.message?.(`${folder}: hello`)
  kit.message?.(`${folder}: researched`, { sender: 'Researcher' })
  kit.message?.(`${folder}: to another chat`, { jid: 'local:third' })
  kit.message?.(`${folder}: as somebody else`, { jid: 'local:third', claims: true })
}
