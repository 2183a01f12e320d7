import type { Kit } from './kit.ts'
import { checkFlatGroups, flatTaskKeys } from './nanoclaw.ts'

/** What NovaBot's code and its document have in common. */
export const ipc = '/workspace/ipc'

export const novaBotKit = (who: Kit['who']): Pick<Kit, 'ipc' | 'who' | 'taskKeys' | 'checkGroups'> => ({
  ipc,
  who,
  taskKeys: { always: flatTaskKeys, maybe: [], group: 'groupFolder' },
  checkGroups: checkFlatGroups(who.main),
})
