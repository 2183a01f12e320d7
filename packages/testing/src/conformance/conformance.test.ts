import { afterAll, expect, test } from 'vitest'
import { startDockerEngine } from '../sandboxes/engines.ts'
import { novabot } from './dialects/novabot.ts'
import { pynchy } from './dialects/pynchy.ts'
import type { FeatureId } from './features.ts'
import { buildImages } from './images.ts'
import { judge } from './judge.ts'
import { openTestbed } from './testbed.ts'

/**
 * Two of the containers of `npm run conformance`, with a little of what they do there: started, spoken to, asked to
 * finish for a task of their own, and started again. All the rest is that command's.
 */
const docker = await startDockerEngine()
afterAll(() => docker?.stop())

const seen: readonly FeatureId[] = [
  ...(['uid', 'folders', 'document', 'environment', 'session', 'scheduled', 'close', 'message'] as const),
  ...(['cron', 'once', 'pause', 'resume', 'cancel', 'tasks-shape', 'tasks-live', 'readonly'] as const),
]

// On a contributor's machine Docker may be missing, and the name says so; where everything has to be proven it fails.
const attempt = docker || process.env.CI === 'true' ? test : test.skip
attempt(`other projects’ containers run as they are${docker ? '' : ' (needs a Docker engine)'}`, async () => {
  const columns = [novabot, pynchy]
  await buildImages(columns, docker?.options.environment)
  const closing: (() => Promise<void>)[] = []
  const live = async (column: (typeof columns)[number]) => {
    const environment = docker?.options.environment ?? {}
    const atEnd = (close: () => Promise<void>) => void closing.push(close)
    const testbed = await openTestbed({ column, docker: environment, radicale: undefined, atEnd })
    const did = (order: string) =>
      testbed.until(`it has done ${order}`, () => testbed.runsThatDid('other', order).length > 0)
    await testbed.say('other', 'do look messages tasks plan')
    await did('tick')
    await testbed.say('other', 'do again')
    await did('again')
    await testbed.until('it is answered', () => testbed.isAnswered('other', 'did again'))
    await testbed.stop()
    const judgements = (await judge(testbed)).filter(({ feature }) => seen.includes(feature))
    expect(judgements).toEqual(
      column.has.filter(id => seen.includes(id)).map(feature => ({ feature, ok: true, seen: '' })),
    )
    expect(testbed.runs('other').map(({ kind }) => kind)).toEqual(['chat', 'task', 'chat'])
  }
  try {
    await Promise.all(columns.map(live))
  } finally {
    for (const close of closing) await close()
  }
})
