import { join } from 'node:path'
import { eventually, isThere, readJson } from './boxes.ts'
import { check, must, type Row } from './evidence.ts'
import type { Kit } from './kit.ts'

const shown = (kit: Kit): readonly Row[] => {
  const path = join(kit.ipc, 'available_groups.json')
  return kit.checkGroups(isThere(path) ? readJson(path) : undefined)
}

const isListed = (kit: Kit, name: string) => shown(kit).some(group => group.name === name)

export async function registerGroups(kit: Kit): Promise<void> {
  const group = (folder: string, more: object = {}) =>
    kit.register({ jid: `local:${folder}`, name: `Called ${folder}`, folder, trigger: '@New', ...more })
  group('fresh', { needsTrigger: true })
  await check('register', () => eventually('it is listed', () => isListed(kit, 'Called fresh')))
  group('timed', { config: { timeout: 300_000 } })
  group('mounted', { config: { additionalMounts: [{ hostPath: '/etc', containerPath: '/etc' }] } })
  group('taken', { jid: 'local:third' })
  group('third', { jid: 'local:taken' })
  group('../../elsewhere', { jid: 'local:elsewhere' })
  await check('groups-main', () => {
    const groups = shown(kit)
    must(groups.length >= 4, `${groups.length} groups`)
    return groups.length
  })
  if (kit.unregister) {
    kit.unregister('local:fresh')
    await check('unregister', () => eventually('it is gone', () => !isListed(kit, 'Called fresh')))
  }
}

/** What only the main group may. */
export async function tryGroups(kit: Kit): Promise<void> {
  kit.register({ jid: 'local:mine', name: 'Mine', folder: 'mine', trigger: '@New' })
  await check('groups-others', () => must(shown(kit).length === 0, 'it is shown groups'))
}

export async function overseeGroups(kit: Kit): Promise<void> {
  await check('groups-main', () => void shown(kit))
}
