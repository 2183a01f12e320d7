import { commandFrom } from '../commands.ts'
import type { Dialect, IncomingFile, Translation } from '../dialect.ts'
import { refusal } from '../errors.ts'
import { misplaced, usualDirectories } from '../placement.ts'
import { requestOf } from '../requests.ts'
import { argumentsOf } from './fields.ts'
import { flatShapes, readFlat } from './flat.ts'
import { closeSentinel, flatGroups, flatInput, flatTasks } from './outgoing.ts'
import { nanoclawPrompt } from './said.ts'

/** A tool that a skill added to NanoClaw: `x_post` and its like, answered in x_results/. */
const skillType = /^x_[A-Za-z0-9_]{1,62}$/

const readSkill = ({ body, directory }: IncomingFile, type: string): Translation => {
  const { reply, fault } = requestOf(body)
  if (!reply) {
    const command = fault ?? refusal('invalid_field', 'requestId: is required')
    return { dialect: 'nanoclaw', type, command }
  }
  const payload = {
    tool: type,
    arguments: argumentsOf(body, ['type', 'requestId', 'request_id', 'timestamp']),
  }
  const command =
    misplaced(directory, usualDirectories('call_service')) ??
    commandFrom('call_service', payload, path => (path[0] === 'tool' ? 'type' : path.join('.')))
  return { dialect: 'nanoclaw', type, command, reply }
}

export const nanoclaw: Dialect = {
  name: 'nanoclaw',
  directories: ['messages', 'tasks', 'input', 'x_results'],
  recognise(file) {
    const { type } = file.body
    if (typeof type !== 'string') return undefined
    const flat = flatShapes.get(type)
    if (flat) return readFlat('nanoclaw', file, type, flat)
    return skillType.test(type) ? readSkill(file, type) : undefined
  },
  tasks: flatTasks,
  groups: flatGroups,
  input: flatInput(nanoclawPrompt),
  close: closeSentinel,
}
