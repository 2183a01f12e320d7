import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { type ConfigInput, configSchema } from '../../config.ts'
import { createJobRules } from './rules.ts'

const root = { name: 'root', uid: 0 }
const someone = { name: 'someone', uid: 1000 }

function open(hostJobs: ConfigInput['hostJobs'], own = someone, runsAgents = true) {
  return createJobRules(configSchema.parse({ hostJobs }).hostJobs, runsAgents, () => own)
}

function openGround() {
  const ground = realpathSync(mkdtempSync(join(tmpdir(), 'hatchway-job-rules-')))
  onTestFinished(() => rmSync(ground, { recursive: true }))
  for (const name of ['one/inner', 'two', 'one-more']) mkdirSync(join(ground, name), { recursive: true })
  return ground
}

const job = { name: 'job', command: 'true', cwd: null, user: null, timeout_seconds: 60 }

test('there are none unless they are switched on, where tasks are run', () => {
  expect(open({})).toBeUndefined()
  expect(open({ directories: ['/tmp'] })).toBeUndefined()
  expect(open({ enabled: 'yes', directories: ['/tmp'] }, someone, false)).toBeUndefined()
  expect(open({ enabled: 'yes' })?.settle(job)).toMatchObject({ error: { code: 'unavailable' } })
})

test('a directory is one of the list or below it, as the kernel sees it', () => {
  const ground = openGround()
  symlinkSync(join(ground, 'two'), join(ground, 'one', 'link-two'))
  symlinkSync(join(ground, 'one-more'), join(ground, 'one', 'link-more'))
  symlinkSync(join(ground, 'one'), join(ground, 'link-one'))
  // A list may name a link, too, and what is not there yet.
  const directories = [join(ground, 'link-one'), join(ground, 'two'), join(ground, 'later')]
  const rules = open({ enabled: 'yes', directories })
  const settled = (cwd: string | null) => {
    const found = rules?.settle({ ...job, cwd })
    return found === undefined || 'ok' in found ? found?.error.code : found.cwd?.slice(ground.length)
  }
  expect(settled(null)).toBe('/one')
  expect(settled('inner')).toBe('/one/inner')
  expect(settled(join(ground, 'one'))).toBe('/one')
  expect(settled('link-two')).toBe('/two')
  expect(settled(join(ground, 'two/'))).toBe('/two')
  for (const cwd of ['link-more', '..', '../one-more', join(ground, 'later'), ground, '/', '/dev/null'])
    expect(settled(cwd)).toBe('forbidden')
  expect(open({ enabled: 'yes', directories: ['/'] })?.settle({ ...job, cwd: ground })).toMatchObject({
    cwd: ground,
  })
})

test.each([
  ['the daemon’s own', someone, [], null, null],
  ['by its name', someone, [], 'someone', 'someone'],
  ['another, of a daemon that is not root', someone, ['backup'], 'backup', 'unavailable'],
  ['the usual one, which it cannot be', someone, ['backup'], null, 'unavailable'],
  ['one that is not listed', someone, [], 'backup', 'forbidden'],
  ['root, of a daemon that is', root, [], null, 'unavailable'],
  ['root by its name', root, [], 'root', 'unavailable'],
  ['the first of the list', root, ['backup', 'root'], null, 'backup'],
  ['another of the list', root, ['backup', 'root'], 'root', 'root'],
  ['another that is not', root, ['backup'], 'root', 'forbidden'],
] as const)('a user: %s', (_, own, users, user, expected) => {
  const found = open({ enabled: 'yes', directories: ['/tmp'], users: [...users] }, own)?.settle({
    ...job,
    user,
  })
  expect(found && ('ok' in found ? found.error.code : found.user)).toBe(expected)
})

test('a time-out is within the longest', () => {
  const rules = open({ enabled: 'yes', directories: ['/tmp'], longestSeconds: 60 })
  expect(rules?.settle(job)).not.toHaveProperty('ok')
  expect(rules?.settle({ ...job, timeout_seconds: 61 })).toMatchObject({ error: { code: 'invalid_field' } })
})
