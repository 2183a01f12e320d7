import { type CommandType, isCommandType, payloads } from '../commands.ts'
import type { Dialect, IncomingFile, Translation } from '../dialect.ts'
import { envelopeFields, versions } from '../envelope.ts'
import { type Refusal, refusal } from '../errors.ts'
import { misplaced, usualDirectories } from '../placement.ts'
import { nearestName, noSuchField, shownName } from '../unknown-fields.ts'
import { commandFrom, readableType, unknownType } from '../validate.ts'
import { closeSentinel, json, todosFile, visibleTasks } from './outgoing.ts'

/** Hatchway's own protocol, version 1. Nothing is guessed in it: what the schema does not allow is refused. */
const { id: idSchema, sent_at: sentAtSchema } = envelopeFields.shape

const envelopeNames = [...Object.keys(envelopeFields.shape), 'type', 'payload']

/** A field of the payload that stands beside it would be lost just as a misspelt one. */
const strayField = (body: IncomingFile['body'], type: CommandType): Refusal | undefined => {
  for (const name in body) {
    if (envelopeNames.includes(name)) continue
    const inside = nearestName(name, Object.keys(payloads[type].shape))
    const rule =
      inside === undefined
        ? noSuchField(name, envelopeNames)
        : `there is no such field; did you mean payload.${inside}?`
    return refusal('invalid_field', `${shownName(name)}: ${rule}`)
  }
  return undefined
}

const directoriesFor = (command: CommandType): readonly string[] => [
  'messages',
  'tasks',
  ...usualDirectories(command),
]

const read = ({ body, directory }: IncomingFile, id: string | undefined): Translation['command'] => {
  if (!versions.includes(body.version)) {
    return refusal('unsupported_version', `version: this host speaks ${versions.join(', ')}`)
  }
  if (id === undefined) {
    const rule = body.id === undefined ? 'is required' : 'must be 1 to 128 letters, digits, "-" or "_"'
    return refusal('invalid_field', `id: ${rule}`)
  }
  if (typeof body.type !== 'string' || !isCommandType(body.type)) return unknownType(body.type)
  const refused: Refusal | undefined =
    misplaced(directory, directoriesFor(body.type)) ?? strayField(body, body.type)
  if (refused) return refused
  if (!sentAtSchema.safeParse(body.sent_at).success) {
    return refusal('invalid_field', 'sent_at: must be a time such as 2026-01-31T09:30:00Z')
  }
  return commandFrom(body.type, body.payload === undefined ? {} : body.payload, path =>
    ['payload', ...path].map(String).join('.'),
  )
}

export const hatchway: Dialect = {
  name: 'hatchway',
  directories: ['messages', 'tasks', 'input', 'responses'],
  recognise(file) {
    const { body } = file
    if (body.version === undefined) return undefined
    // another dialect's request may have an argument of that name
    if (body.request_id !== undefined) return undefined
    // a flat file that merely states the version it is written in
    if (body.version === 1 && body.id === undefined && body.payload === undefined) return undefined
    const id = idSchema.safeParse(body.id).data
    const translation = {
      dialect: 'hatchway' as const,
      type: readableType(body.type),
      command: read(file, id),
    }
    return id === undefined
      ? translation
      : { ...translation, reply: { directory: 'responses', id, shape: 'receipt' } }
  },
  tasks: (tasks, viewer) => json('current_tasks.json', visibleTasks(tasks, viewer)),
  groups: (groups, viewer, syncedAt) =>
    json('available_groups.json', { groups: viewer.main ? groups : [], synced_at: syncedAt }),
  services: services => ({ path: 'services.json', content: JSON.stringify(services) }),
  todos: todosFile,
  progress: progress => ({
    path: `responses/${progress.id}.progress.json`,
    content: JSON.stringify(progress),
  }),
  input: (message, name) => json(`input/${name}.json`, { version: 1, type: 'message', ...message }),
  close: closeSentinel,
  stop: () => ({ path: 'input/_stop', content: '' }),
}
