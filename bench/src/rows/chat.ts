import { type Absent, type Contender, interleave, isPresent } from '../contenders.ts'
import { absent, times, timing } from '../format.ts'
import { bwrapContender, bwrapName } from '../peers/bwrap.ts'
import { chatContender } from '../peers/chat.ts'
import type { Line, Row, RowResult, Setting } from '../row.ts'
import { pairedRatio, type Rounds } from '../statistics.ts'

const sessions = ['cold', 'warm'] as const
const chatName = (session: (typeof sessions)[number]) => `chat ${session}`

/** a session that runs already has nothing to start */
const limits: Record<(typeof sessions)[number], number | undefined> = { cold: 6, warm: undefined }

const line = (measured: ReadonlyMap<string, Rounds>, session: (typeof sessions)[number]): Line => {
  const own = measured.get(chatName(session))
  const bare = measured.get(bwrapName)
  const ratio = own && bare && pairedRatio(own.medians, bare.medians)
  const limit = limits[session]
  return {
    what: `chat message → reply, bubblewrap, ${session}`,
    hatchway: own === undefined ? absent : timing(own),
    against: bare === undefined ? bwrapName : `${bwrapName} ${timing(bare)}`,
    ratio: ratio === undefined ? absent : times(ratio),
    target: limit === undefined ? absent : `≤ ${limit}×`,
    ...(ratio === undefined || limit === undefined ? {} : { met: ratio <= limit }),
  }
}

/** The concierge, which needs no model: what is measured is the way there and back, and one tool on it. */
const run = async ({ directory, quick, say }: Setting): Promise<RowResult> => {
  const entrants: (Contender | Absent)[] = [bwrapContender()]
  for (const session of sessions)
    entrants.push(await chatContender(directory, chatName(session), session, 'bubblewrap'))
  const present = entrants.filter(isPresent)
  const measured = await interleave(present, { rounds: quick ? 3 : 10, samples: quick ? 2 : 12, say })
  for (const contender of present) await contender.end()
  return {
    lines: sessions.map(session => line(measured, session)),
    figures: Object.fromEntries(measured),
    missing: [...new Set(entrants.flatMap(entrant => (isPresent(entrant) ? [] : [entrant.missing])))],
  }
}

export const chat: Row = { name: 'chat', title: 'chat message → reply by the concierge in bubblewrap', run }
