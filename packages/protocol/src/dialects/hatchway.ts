import {
  type CommandType,
  commandFrom,
  isCommandType,
  isPluginType,
  payloads,
  pluginCommandSchema,
} from '../commands.ts'
import type { Dialect, IncomingFile, Translation } from '../dialect.ts'
import { envelopeFields, versions } from '../envelope.ts'
import { type Refusal, refusal } from '../errors.ts'
import { misplaced, usualDirectories } from '../placement.ts'
import { readableType, unknownType } from '../refusal-text.ts'
import { nearestName, noSuchField, shownName } from '../unknown-fields.ts'
import { closeSentinel, json, todosFile, visibleTasks } from './outgoing.ts'

/** Hatchway's own protocol, version 1. Nothing is guessed in it: what the schema does not allow is refused. */
const { id: idSchema, sent_at: sentAtSchema } = envelopeFields.shape

const envelopeNames = [...Object.keys(envelopeFields.shape), 'type', 'payload']

/** A field of the payload that stands beside it would be lost just as a misspelt one. */
const strayField = (body: IncomingFile['body'], known: readonly string[]): Refusal | undefined => {
  for (const name in body) {
    if (envelopeNames.includes(name)) continue
    const inside = nearestName(name, known)
    const rule =
      inside === undefined
        ? noSuchField(name, envelopeNames)
        : `there is no such field; did you mean payload.${inside}?`
    return refusal('invalid_field', `${shownName(name)}: ${rule}`)
  }
  return undefined
}

const wrongTime = ({ sent_at }: IncomingFile['body']): Refusal | undefined =>
  sentAtSchema.safeParse(sent_at).success
    ? undefined
    : refusal('invalid_field', 'sent_at: must be a time such as 2026-01-31T09:30:00Z')

const anywhere: readonly string[] = ['messages', 'tasks']
const directoriesFor = (command: CommandType): readonly string[] => [
  ...anywhere,
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
  const { type } = body
  const payload = body.payload === undefined ? {} : body.payload
  if (isPluginType(type)) {
    const refused = misplaced(directory, anywhere) ?? strayField(body, []) ?? wrongTime(body)
    if (refused) return refused
    const command = pluginCommandSchema.safeParse({ type, payload }).data
    return command ?? refusal('invalid_field', 'payload: must be an object')
  }
  if (typeof type !== 'string' || !isCommandType(type)) return unknownType(type)
  const refused =
    misplaced(directory, directoriesFor(type)) ??
    strayField(body, Object.keys(payloads[type].shape)) ??
    wrongTime(body)
  return refused ?? commandFrom(type, payload, path => ['payload', ...path].map(String).join('.'))
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
  groups: (groups, viewer, syncedAt, others = []) =>
    json('available_groups.json', {
      groups: viewer.main ? groups : [],
      ...(viewer.main && others.length > 0 && { chats: others }),
      synced_at: syncedAt,
    }),
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
