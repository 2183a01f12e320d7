import type { Services } from '@hatchway/protocol'
import { complain } from '../failure.ts'
import { serviceTool } from '../service-tool.ts'
import type { Surroundings, Tool } from '../tool.ts'
import { groupTools } from './groups.ts'
import { sendMessage } from './messages.ts'
import { offeredNames, offeredTools } from './privileged.ts'
import { askUser } from './questions.ts'
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

/** What the host's services add to them. Nobody may take the name of a tool of ours, offered or not. */
export function serviceToolsFor(
  { tools, questions, commands }: Services,
  surroundings: Surroundings,
): readonly Tool[] {
  const taken = new Set<string>([
    'ask_user',
    ...offeredNames,
    ...toolsFor({ ...surroundings, main: true }).map(({ name }) => name),
  ])
  const added = [
    ...(questions ? [askUser(questions.timeout_ms)] : []),
    ...offeredTools(commands, surroundings),
  ]
  for (const service of tools) {
    const tool = serviceTool(service)
    const problem = 'problem' in tool ? tool.problem : taken.has(tool.name) ? 'its name is taken' : undefined
    if (problem !== undefined || 'problem' in tool) {
      complain(`the service ${service.name} is not offered: ${problem}`)
      continue
    }
    taken.add(tool.name)
    added.push(tool)
  }
  return added
}
