import { z } from 'zod'
import { type Refusal, refusal } from './errors.ts'
import { noSuchField, shownName } from './unknown-fields.ts'

type Issue = Parameters<z.core.$ZodErrorMap>[0]

const kinds: Record<string, string> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
}

const units: Record<string, string> = { string: ' characters', array: ' entries' }

const fieldsOf = (schema: unknown): string[] =>
  schema instanceof z.ZodObject ? Object.keys(schema.shape) : []

/** The rule that was broken, in words. Never the value that broke it. */
export const brokenRule = (issue: Issue): string => {
  switch (issue.code) {
    case 'invalid_type':
      return issue.input === undefined ? 'is required' : `must be ${kinds[issue.expected] ?? issue.expected}`
    case 'invalid_value':
      return issue.input === undefined ? 'is required' : `must be one of ${issue.values.join(', ')}`
    case 'too_small':
      if (issue.origin in units && issue.minimum === 1) return 'must not be empty'
      return `must be at least ${issue.minimum}${units[issue.origin] ?? ''}`
    case 'too_big':
      return `must be at most ${issue.maximum}${units[issue.origin] ?? ''}`
    case 'unrecognized_keys':
      return noSuchField(issue.keys[0] ?? '', fieldsOf(issue.inst))
    default:
      return 'is not valid'
  }
}

/** Names the field under which the writer knows it. */
export const fieldRefusal = (
  issues: readonly z.core.$ZodIssue[],
  nameOf: (path: readonly PropertyKey[]) => string,
): Refusal => {
  // A field under a wrong name is often why another one is missing.
  const unknown = issues.find(({ code }) => code === 'unrecognized_keys')
  const issue = unknown ?? issues[0]
  const path = [...(issue?.path ?? [])]
  if (unknown?.code === 'unrecognized_keys') path.push(shownName(unknown.keys[0] ?? ''))
  return refusal('invalid_field', `${nameOf(path)}: ${issue?.message ?? 'is not valid'}`)
}

const readable = /^[A-Za-z0-9_:.-]{1,64}$/

/** A type for people to read. What a hostile file names itself reaches no log and no answer. */
export const readableType = (type: unknown): string =>
  typeof type === 'string' && readable.test(type) ? type : '?'

export const unknownType = (type: unknown): Refusal => {
  if (type === undefined) return refusal('invalid_field', 'type: is required')
  if (typeof type !== 'string') return refusal('invalid_field', 'type: must be a string')
  return refusal(
    'unknown_type',
    readable.test(type)
      ? `there is no command of type ${type}`
      : 'there is no command of the type the file names',
  )
}
