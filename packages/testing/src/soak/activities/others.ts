import { join } from 'node:path'
import type { GroupsByLife, SoakGroup } from '../plan.ts'
import { type Activity, inTurn, type Poster } from '../poster.ts'

const guestFolders = 10
const broken = ['{"type":"message","text":]', '{"type":"no_such_command"}', '[1,2,3]']

/** What is refused, and what only the main group may do. `refusing` groups of each kind have files refused. */
export function otherActivities(poster: Poster, { of }: GroupsByLife, refusing: number): Activity[] {
  const { random, askFor } = poster
  const [main] = of('main')
  const visiting = new Set<string>()
  let guests = 0

  /** A group that is registered, says something, and is gone again. */
  const haveGuest = async (host: SoakGroup) => {
    const folder = `guest-${guests++ % guestFolders}`
    if (visiting.has(folder)) return
    visiting.add(folder)
    const jid = `web:${folder}`
    const guest: SoakGroup = { folder, jid, dialect: 'hatchway', lives: 'asking' }
    const payload = { jid, name: folder, folder, requires_trigger: false }
    await askFor(host, { kind: 'group registered', type: 'register_group', payload })
    poster.receipts.watch(join(poster.inboxOf(guest), 'responses'))
    await askFor(guest, { kind: 'message', type: 'send_message', payload: { text: poster.nextMessage() } })
    await askFor(host, { kind: 'group unregistered', type: 'unregister_group', payload: { jid } })
    visiting.delete(folder)
  }

  const forbidden = { jid: 'x:y', name: 'n', folder: 'elsewhere' }
  return [
    {
      name: 'forbidden',
      often: 100,
      act: inTurn(of('asking').slice(0, refusing), group => {
        poster.refusedIn(group)
        const asking = { kind: 'forbidden', type: 'register_group', payload: forbidden }
        return askFor(group, asking, ({ code }) => code === 'forbidden')
      }),
    },
    {
      name: 'refused',
      often: 100,
      act: inTurn(of('flat').slice(0, refusing), group => {
        poster.refusedIn(group)
        poster.count('refused')
        poster.drop(group, 'tasks', random.pick(broken))
      }),
    },
    { name: 'guest', often: 30, act: () => main && haveGuest(main) },
    {
      name: 'refresh',
      often: 10,
      act: () => main && askFor(main, { kind: 'groups refreshed', type: 'refresh_groups', payload: {} }),
    },
    {
      name: 'elsewhere',
      often: 60,
      act: inTurn(of('inhabited'), ({ jid }) => {
        if (!main) return
        const payload = { jid, text: poster.nextMessage() }
        return askFor(main, { kind: 'message', type: 'send_message', payload })
      }),
    },
  ]
}
