import { payloads } from '@hatchway/protocol'
import { judgeShell } from '@hatchway/protocol/shell'
import { done, refused } from '../base/outcome.ts'
import { self } from './requests.ts'
import { defineCommand } from './types.ts'

/**
 * Whether a shell command of the agent's may run: the guard decides, from what it is and what the agent has read. That
 * there is an answer at all means that it may; anything else is a no (promise 9).
 */
export const checkShell = defineCommand({
  type: 'check_shell',
  payload: payloads.check_shell,
  permission: { main: 'own', others: 'own' },
  target: (_, context) => self(context),
  guard({ command }, { guard, actor, host }) {
    const verdict = judgeShell(command)
    const folder = actor.kind === 'group' ? actor.group.folder : undefined
    const isOffline = folder !== undefined && guard?.isOffline(folder) === true
    const isHarmless = verdict.harmless || (isOffline && host?.isHarmless(folder, command) === true)
    return {
      action: {
        name: 'shell',
        summary: `run a shell command (${verdict.harmless ? 'harmless' : verdict.reason})`,
        payload: { command },
      },
      reach: isHarmless ? 'local' : 'both',
      // With a network, whatever is not known to be harmless may bring in what strangers wrote.
      reads: { corrupted: !verdict.harmless && !isOffline, secret: false },
    }
  },
  // A daemon without a guard is one whose operator has switched it off.
  execute: (_, { guard, services }) =>
    guard || services
      ? done({ decision: 'allow' })
      : refused('unavailable', 'This host does not judge shell commands, so none is allowed.'),
})
