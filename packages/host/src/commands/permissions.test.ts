import { commandTypes } from '@hatchway/protocol'
import { describe, expect, test } from 'vitest'
import { openStore } from '../store/sqlite.ts'
import { groupOf } from '../store/testing.ts'
import { authorise } from './registry.ts'
import { allCommands } from './testing.ts'
import type { Actor, Target } from './types.ts'

const group = (folder: string, main = false): Actor & { kind: 'group' } => ({
  kind: 'group',
  group: groupOf(folder, { main }),
})

const all = allCommands(openStore({ path: ':memory:', durability: 'process' }))
const command = (type: string) => {
  const found = all.find(one => one.type === type)
  if (!found) throw new Error(`no command ${type}`)
  return found
}

test('the table is the one of the documents', () => {
  const anywhere = commandTypes.filter(type => command(type).permission.main === 'any')
  expect(anywhere.filter(type => command(type).permission.others === 'own')).toEqual([
    'send_message',
    'react',
    'schedule_task',
    'update_task',
    'pause_task',
    'resume_task',
    'cancel_task',
  ])
  expect(anywhere.filter(type => command(type).permission.others === 'never')).toEqual([
    'register_group',
    'unregister_group',
    'refresh_groups',
    'schedule_host_job',
    'create_periodic_agent',
    'deploy',
  ])
  expect(commandTypes.filter(type => command(type).permission.others === 'any')).toEqual([])
})

const targets: Record<string, Target> = {
  'its own folder': { folder: 'family' },
  'its own chat': { jid: 'family@chat' },
  'another folder': { folder: 'work' },
  'another chat': { jid: 'work@chat' },
  'the host': 'host',
}

describe.each(commandTypes)('%s', type => {
  test.each(Object.entries(targets))('on %s', (name, target) => {
    const own = name.startsWith('its own')
    const { main, others } = command(type).permission
    const allowed = (actor: Actor) => authorise(command(type), actor, target) === undefined

    expect(allowed({ kind: 'operator' })).toBe(true)
    expect(allowed(group('family'))).toBe(others === 'own' && own)
    expect(allowed(group('family', true))).toBe(main === 'any' || own)
  })
})

test.each<Target>([
  { folder: 'main-x' },
  { folder: 'mai' },
  { folder: 'Main' },
  { folder: 'main ' },
  { folder: '' },
  { folder: 'main@chat' },
  { jid: 'main@chatx' },
  { jid: 'MAIN@chat' },
  { jid: 'main' },
  { jid: '' },
])('names are compared whole: %j is not main’s own', target => {
  expect(authorise(command('reset_context'), group('main', true), target)?.error.code).toBe('forbidden')
  expect(authorise(command('send_message'), group('main'), target)?.error.code).toBe('forbidden')
})

test('a folder called main has no rights unless the registry gives them', () => {
  expect(authorise(command('register_group'), group('main'), 'host')?.error.code).toBe('forbidden')
  expect(authorise(command('register_group'), group('anything', true), 'host')).toBeUndefined()
})
