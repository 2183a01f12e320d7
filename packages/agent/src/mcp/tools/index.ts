import type { Surroundings, Tool } from '../tool.ts'
import { groupTools } from './groups.ts'
import { sendMessage } from './messages.ts'
import { taskTools } from './tasks.ts'

/**
 * The tools an agent sees. Adding one is a `commandTool` (a command to the host) or a `defineTool` (anything else) in a
 * file here, and its entry below. What a group may not do anyway is not offered to it; the host decides all the same.
 */
export const toolsFor = (surroundings: Surroundings): readonly Tool[] => [
  sendMessage,
  ...taskTools(surroundings),
  ...(surroundings.main ? groupTools : []),
]
