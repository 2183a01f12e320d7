import { appendFileSync, rmdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { post } from './post.ts'
import { createRig, until } from './testing/rig.ts'

/** Records each callback of `whenDrained` with the names delivered by then. */
function listen(rig: ReturnType<typeof createRig>, inbox: string) {
  const calls: string[][] = []
  rig.spool.whenDrained(inbox, () => calls.push(rig.names(inbox)))
  return calls
}

it.each(['auto', 'off'] as const)(
  'with events %s, whenDrained calls back when everything in the inbox is consumed',
  async events => {
    const rig = createRig({ events })
    const [tasks = ''] = rig.inbox('a', 'tasks')
    await rig.spool.start()
    const posted = Array.from({ length: 700 }, () => post(tasks, '{}'))
    const calls = listen(rig, 'a')
    expect(calls).toEqual([])
    await until(() => calls.length === 1)
    expect(calls[0]).toEqual(posted)
    const quiet = listen(rig, 'a')
    await until(() => quiet.length === 1)
  },
)

it('waits for files that look half-written, and for a slow consumer', async () => {
  const consumed: string[] = []
  const rig = createRig({
    graceMs: 60_000,
    async consume(files, spool) {
      for (const file of files) {
        if (!file.text.endsWith('}')) {
          spool.postpone(file)
          continue
        }
        await new Promise(resolve => setTimeout(resolve, 20))
        consumed.push(file.name)
        spool.discard([file])
      }
    },
  })
  const [tasks = ''] = rig.inbox('a', 'tasks')
  await rig.spool.start()
  writeFileSync(join(tasks, 'half.json'), '{')
  await until(() => rig.claimedFiles().length === 1)
  const calls: string[][] = []
  rig.spool.whenDrained('a', () => calls.push([...consumed]))
  const later = post(tasks, '{}')
  await until(() => consumed.includes(later))
  expect(calls).toEqual([])
  appendFileSync(rig.delivered.find(({ name }) => name === 'half.json')?.path ?? '', '}')
  await until(() => calls.length === 1)
  expect(calls[0]).toContain('half.json')
})

it('waits for files that the allowance does not permit yet', async () => {
  let files = 0
  const rig = createRig({ allowance: () => ({ files, retryMs: 5 }) })
  const [tasks = ''] = rig.inbox('a', 'tasks')
  await rig.spool.start()
  post(tasks, '{}')
  const calls = listen(rig, 'a')
  await new Promise(resolve => setTimeout(resolve, 50))
  expect(calls).toEqual([])
  files = 10
  await until(() => calls.length === 1)
  expect(calls[0]).toHaveLength(1)
})

it('does not wait for a directory that cannot be read, nor for a removed inbox', async () => {
  const rig = createRig()
  rig.missingInbox('absent', 'tasks')
  const [tasks = ''] = rig.inbox('swapped', 'tasks')
  rig.inbox('removed', 'tasks')
  await rig.spool.start()
  rmdirSync(tasks)
  symlinkSync('/', tasks)
  const calls = ['swapped', 'absent', 'nobody'].map(inbox => listen(rig, inbox))
  const removed = listen(rig, 'removed')
  rig.spool.remove('removed')
  expect(removed).toHaveLength(1)
  await until(() => calls.every(each => each.length === 1))
})
