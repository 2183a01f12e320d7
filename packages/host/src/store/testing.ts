import type { Group } from '@hatchway/protocol'

/** A group as tests need one, unless they need another. */
export const groupOf = (folder: string, more: Partial<Group> = {}): Group => ({
  folder,
  jid: `${folder}@chat`,
  name: folder,
  main: false,
  dialect: 'hatchway',
  trigger: null,
  requires_trigger: true,
  channel: null,
  added_at: '2026-01-01T00:00:00.000Z',
  last_activity: null,
  ...more,
})
