import { expect, test } from 'vitest'
import { findSharedMounts } from '../guard/shared-mounts.ts'
import { imageFor } from '../runs/launch.ts'
import { modelOf } from '../runs/model-gateway/health.ts'
import { configSchema, settingsOf, zoneOf } from './schema.ts'

test('the settings of a group count however its folder is written; the same spelling comes first', () => {
  const config = configSchema.parse({
    timezone: 'UTC',
    groups: {
      Family: {
        ...{ timezone: 'Europe/Lisbon', image: 'mine', model: { name: 'own' }, sandbox: 'podman' },
        mounts: [{ from: '/tmp', to: 'notes', writable: true }],
      },
      FAMILY: { image: 'other' },
    },
  })
  expect(zoneOf(config, 'family')).toBe('Europe/Lisbon')
  expect(zoneOf(config, 'others')).toBe('UTC')
  expect(imageFor(config, { folder: 'Family' }, { hasImages: true })).toBe('mine')
  expect(imageFor(config, { folder: 'FAMILY' }, { hasImages: true })).toBe('other')
  expect(modelOf(config, {}, 'fAMILY').name).toBe('own')
  expect(settingsOf(config, 'family')).toMatchObject({ sandbox: 'podman', mounts: [{ to: 'notes' }] })
  expect(settingsOf(config, 'constructor')).toEqual({})
})

test('what a group writes into a directory that others read is found by its registered name', () => {
  const mounts = [{ from: '/tmp', writable: true }]
  const { writersFor, writes } = findSharedMounts({ Writer: { mounts }, Reader: { mounts } }, () => [
    'writer',
    'reader',
  ])
  expect(writersFor('reader')).toEqual(['writer'])
  expect([writes('WRITER'), writes('others')]).toEqual([true, false])
})
