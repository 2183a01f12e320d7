import { appendFileSync, rmdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { post } from './post.ts'
import { createRig, until } from './rig.ts'

/** Told, and what had been handed over by then. */
function listen(rig: ReturnType<typeof createRig>, inbox: string) {
  const told: string[][] = []
  rig.spool.whenThrough(inbox, () => told.push(rig.names(inbox)))
  return told
}

it.each(['auto', 'off'] as const)('with events %s, says when what lies there is consumed', async events => {
  const rig = createRig({ events })
  const [tasks = ''] = rig.inbox('a', 'tasks')
  await rig.spool.start()
  const posted = Array.from({ length: 700 }, () => post(tasks, '{}'))
  const told = listen(rig, 'a')
  expect(told).toEqual([])
  await until(() => told.length === 1)
  expect(told[0]).toEqual(posted)
  const quiet = listen(rig, 'a')
  await until(() => quiet.length === 1)
})

it('waits for what seems half-written, and for a consumer that takes its time', async () => {
  const consumed: string[] = []
  const rig = createRig({
    graceMs: 60_000,
    async consume(files, spool) {
      for (const file of files) {
        if (!file.text.endsWith('}')) {
          spool.wait(file)
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
  const told: string[][] = []
  rig.spool.whenThrough('a', () => told.push([...consumed]))
  const later = post(tasks, '{}')
  await until(() => consumed.includes(later))
  expect(told).toEqual([])
  appendFileSync(rig.handed.find(({ name }) => name === 'half.json')?.path ?? '', '}')
  await until(() => told.length === 1)
  expect(told[0]).toContain('half.json')
})

it('waits for a share that the consumer does not allow yet', async () => {
  let files = 0
  const rig = createRig({ allowance: () => ({ files, retryMs: 5 }) })
  const [tasks = ''] = rig.inbox('a', 'tasks')
  await rig.spool.start()
  post(tasks, '{}')
  const told = listen(rig, 'a')
  await new Promise(resolve => setTimeout(resolve, 50))
  expect(told).toEqual([])
  files = 10
  await until(() => told.length === 1)
  expect(told[0]).toHaveLength(1)
})

it('does not wait for what cannot be looked into, nor for an inbox that is removed', async () => {
  const rig = createRig()
  rig.absentInbox('absent', 'tasks')
  const [tasks = ''] = rig.inbox('swapped', 'tasks')
  rig.inbox('removed', 'tasks')
  await rig.spool.start()
  rmdirSync(tasks)
  symlinkSync('/', tasks)
  const told = ['swapped', 'absent', 'nobody'].map(inbox => listen(rig, inbox))
  const removed = listen(rig, 'removed')
  rig.spool.remove('removed')
  expect(removed).toHaveLength(1)
  await until(() => told.every(each => each.length === 1))
})
