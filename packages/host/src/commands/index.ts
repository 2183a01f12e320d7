import { refreshGroups, registerGroup, unregisterGroup } from './groups.ts'
import { react, sendMessage } from './messages.ts'
import { askUser } from './questions.ts'
import { callService, cancelRequest } from './requests.ts'
import { finishedWork, resetContext } from './sessions.ts'
import { checkShell } from './shell.ts'
import { cancelTask, pauseTask, resumeTask, scheduleTask, updateTask } from './tasks.ts'
import type { CommandDefinition } from './types.ts'
import { showWithheld } from './withheld.ts'

export { addGroup } from './groups.ts'

/** The commands that every host has. Plugins add theirs. */
export const kernelCommands: readonly CommandDefinition[] = [
  sendMessage,
  react,
  scheduleTask,
  updateTask,
  pauseTask,
  resumeTask,
  cancelTask,
  registerGroup,
  unregisterGroup,
  refreshGroups,
  showWithheld,
  resetContext,
  finishedWork,
  callService,
  askUser,
  cancelRequest,
  checkShell,
]
