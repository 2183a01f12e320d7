import { z } from 'zod'

/**
 * Every way a command can fail, with what the reader should do about it. The list is closed: a code that is not
 * here cannot be answered, and docs/protocol.md is generated from it.
 */
export const errorCodes = {
  bad_name:
    'The file name is not one the hatch reads. Use letters, digits, dot, dash and underscore, ending in .json.',
  not_a_file: 'Only a regular file with a single link is read. Write a new file instead of linking to one.',
  too_large: 'The file is larger than the limit. Split the content or put it in the group folder.',
  too_deep: 'The JSON is nested deeper than the limit. Flatten it.',
  invalid_utf8: 'The file is not valid UTF-8, or a string in it has half a surrogate pair. Write UTF-8.',
  invalid_json:
    'The file is not one complete JSON object. Write it under a temporary name and rename it when whole.',
  duplicate_key: 'An object in the file names the same key twice. Name each key once.',
  unsupported_version:
    'The protocol version is not spoken here. Use one of the versions named in the message.',
  unknown_type: 'No command has this type. See the list of commands in docs/protocol.md.',
  invalid_field:
    'A field is missing, does not exist, or has a value that is not allowed. The message names the field.',
  sender_mismatch:
    'The file claims another sender than the directory it lies in. Leave the claim out or make it true.',
  unregistered_group: 'The group is not registered. Register it before its files are handled.',
  forbidden: 'The group may not do this. Only the main group, or the owner, may.',
  not_found: 'What the command refers to does not exist. List what exists and use an id from there.',
  conflict:
    'Something with this id, folder or chat exists already, or is no longer what it was when it was shown for a decision. Choose another, or ask again.',
  bad_schedule: 'The schedule cannot be run. The message says what is wrong with it.',
  wrong_state: 'The thing is in a state in which this cannot be done.',
  too_many_waiting: 'More files are waiting than the group may have. Wait for answers before sending more.',
  quota_exceeded:
    'The group has as many of these as it may have. Remove some it no longer needs, or ask the operator for more.',
  dirty_tree: 'The worktree has changes that are not committed. Commit or remove what the message lists.',
  merge_conflict:
    'The commits do not go on top of the branch as it is now. Resolve what the message lists, and ask again.',
  check_failed:
    'A command that the operator has configured as a check failed. The message ends with its output.',
  rolled_back: 'The new revision did not come up, so the host runs the one before. The message says why.',
  unavailable: 'This host does not offer what was asked for.',
  denied:
    'The guard, its inspector or a person said no. The message says why; asking again in other words does not help.',
  expired: 'Neither a decision nor an answer came in time. What was asked for may or may not have happened.',
  cancelled: 'The request was taken back before it was answered. Its service was told to stop.',
  interrupted:
    'The host stopped while a service was at work on the request. It may have happened or not: look before asking again.',
  service_failed:
    'The service could not do it. The message says why; ask again only if that can have changed.',
  answer_too_large: 'The answer is larger than may be given. Ask for less of it.',
  internal: 'The host failed while handling the command. The file is kept; an operator can replay it.',
} as const

export type ErrorCode = keyof typeof errorCodes

export const errorCodeSchema = z.enum(Object.keys(errorCodes) as [ErrorCode, ...ErrorCode[]])

export interface Refusal {
  code: ErrorCode
  message: string
}

export const refusal = (code: ErrorCode, message: string): Refusal => ({ code, message })

export const isRefusal = (result: object): result is Refusal => 'code' in result
