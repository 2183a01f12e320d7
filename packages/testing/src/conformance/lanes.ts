import { setTimeout as sleep } from 'node:timers/promises'
import type { FeatureId } from './features.ts'
import type { Testbed } from './testbed.ts'

/**
 * What the containers of one column are told to do, in their two groups beside each other. Whatever fails on the way is
 * noted and the rest goes on: what was not seen is a fault of its own.
 */
export interface Problems {
  add(about: string, error: unknown): void
}

/** orders of single projects, by what they show */
const extras: readonly (readonly [FeatureId, order: string, where: 'main' | 'other' | 'both'])[] = [
  ['reaction', 'reactions', 'other'],
  ['names-document', 'document-names', 'other'],
  ['skill', 'skills', 'other'],
  ['reply', 'replies', 'other'],
  ['signal', 'signals', 'main'],
  ['source-group', 'other-source', 'other'],
  ['receipt', 'receipts', 'main'],
]

export async function driveColumn(testbed: Testbed, problems: Problems, tell: (step: string) => void) {
  const { column, say, schedule, runsThatDid, until } = testbed
  const has = (id: FeatureId) => column.has.includes(id)
  const isSpokenTo = has('close')

  const attempt = async (about: string, work: () => Promise<unknown>) => {
    tell(about)
    try {
      await work()
    } catch (error) {
      problems.add(about, error)
    }
  }
  const times = (folder: string, order: string) => runsThatDid(folder, order).length
  /** until the last of the orders is done once more than before */
  const order = async (folder: string, ...orders: string[]) => {
    const last = (orders.at(-1) ?? '').split('=')[0] ?? ''
    const before = times(folder, last)
    const text = `do ${orders.join(' ')}`
    if (isSpokenTo) await say(folder, text)
    else await schedule(folder, text)
    await until(`${folder} has done ${last}`, () => times(folder, last) > before)
  }
  const idle = (folder: string) => until(`nothing runs in ${folder}`, () => testbed.isIdle(folder))

  const own = (folder: 'main' | 'other') =>
    extras
      .filter(([id, , where]) => has(id) && (where === folder || where === 'both'))
      .map(([, name]) => name)

  const common = ['look', 'files', 'messages', 'tasks']
  const last = has('unasked') ? ['unasked'] : []
  const isPrivileged = has('job')

  const first = Promise.all([
    attempt('main: files, messages, tasks, groups', () =>
      order('main', ...common, 'groups', ...own('main'), ...last),
    ),
    attempt('other: files, messages, tasks', () =>
      order('other', ...common, 'try-groups', ...own('other'), ...last),
    ),
  ])
  await first

  const mainLane = async () => {
    await attempt('main: another group’s tasks', async () =>
      order('main', `oversee=${await testbed.taskId('other: no mode')}`),
    )
    if (!isPrivileged) return
    await attempt('main: todos', () => say('main', 'todo buy milk'))
    await attempt('main: services', () => order('main', 'services'))
    await attempt('main: host', () => order('main', 'host'))
  }
  const otherLane = async () => {
    await attempt('other: the main group’s tasks', async () =>
      order('other', `meddle=${await testbed.taskId('main: once')}`),
    )
    if (isPrivileged) {
      await attempt('other: host', () => order('other', 'host'))
      await attempt('other: shell and commits', () => order('other', 'work'))
    }
    if (isSpokenTo) await conversation()
    else await taskRuns()
  }

  const taskRuns = async () => {
    await attempt('other: leaves things behind', () => order('other', 'leave'))
    await attempt('other: a scheduled run', () => order('other', 'tick'))
    await attempt('other: plans a run of its own', async () => {
      await order('other', 'plan-alone')
      await until('the planned run', () => times('other', 'tick-alone') > 0)
    })
  }

  const planned = (plan: string, result: string) =>
    attempt(`other: ${plan}`, async () => {
      await order('other', plan)
      await until(`${result} by schedule`, () => times('other', result) > 0)
      await idle('other')
    })

  const conversation = async () => {
    if (has('idle')) await attempt('other: nothing to say', () => order('other', 'quiet'))
    await attempt('other: a follow-up', async () => {
      await say('other', 'do slow')
      await sleep(700)
      await order('other', 'second')
    })
    if (has('error'))
      await attempt('other: an error', async () => {
        await order('other', 'fail-once')
      })
    await attempt('other: leaves things behind', async () => {
      await order('other', 'leave')
      await idle('other')
      await order('other', 'again')
    })
    await planned('plan', 'tick')
    await planned('plan-alone', 'tick-alone')
    if (has('script')) await planned('plan-script', 'tick-script')
    await attempt('other: asked to finish, seen before a message', () => held('hold-close-first', false))
    await attempt('other: asked to finish, seen after a message', () => held('hold-close-last', false))
    await attempt('other: a message after being asked to finish', () => held('hold-close-before', true))
    if (has('finished')) await planned('plan-finish', 'finish')
    if (has('reset')) await resets()
    if (has('interrupt'))
      await attempt('other: a turn without an end', async () => {
        await say('other', 'do endless')
        await until('it is interrupted', () => times('other', 'endless') > 0 || sawInterrupt())
        await order('other', 'after-endless')
      })
  }
  const sawInterrupt = () => testbed.evidence('other').some(({ feature }) => feature === 'interrupt')

  /** The session is told to finish while a message lies beside the wish, or comes after it. */
  const held = async (hold: string, closesFirst: boolean) => {
    const [boxName, sign] =
      column.dialect === 'novabot' ? ['inbox', 'control/shutdown.json'] : ['input', 'input/_close']
    await order('other', hold)
    const message = () => say('other', `do ${hold}-message`)
    if (closesFirst) {
      await testbed.begin('other')
      await until('the wish to finish', () => testbed.has('other', sign))
      await message()
    } else {
      await message()
      await until('the message', () => testbed.names('other', boxName).some(name => /^\d+\.json$/.test(name)))
      await testbed.begin('other')
    }
    await until('the message is answered', () => times('other', `${hold}-message`) > 0)
  }

  const resets = async () => {
    await attempt('other: begins anew', async () => {
      await order('other', 'reset')
      await idle('other')
      await order('other', 'after-reset')
    })
    await attempt('other: begins anew with a message', async () => {
      await order('other', 'reset-message')
      await until('its successor', () => times('other', 'successor') > 0)
    })
  }

  await Promise.all([mainLane(), otherLane()])

  if (has('deploy'))
    await attempt('main: deploys', async () => {
      const head = testbed.commit()
      await say('main', `do deploy=${head}`)
      await until('it goes on after the restart', () => times('main', 'resumed') > 0)
      await until('the deploy is done', testbed.isDeployed)
    })
  await sleep(1500)
}
