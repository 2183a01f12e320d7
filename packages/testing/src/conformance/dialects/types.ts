import type { DialectName } from '@hatchway/protocol'
import type { FeatureId } from '../features.ts'

/** One column of the table: a kind of container, and everything that dialects.md says it does. */
export interface Column {
  id: string
  title: string
  /** what the host is told that it is */
  dialect: DialectName
  /** how the files it writes by itself are called */
  names: RegExp
  /** names that the project's document gives, beside those */
  documentNames?: RegExp
  /** how a temporary file of its is called that never becomes anything else; left out: it has none */
  temporary?: RegExp
  /** what a task's context mode is where the container names none */
  contextDefault: 'group' | 'isolated'
  has: readonly FeatureId[]
}

/** What containers of all dialects do. */
export const always = [
  ...['uid', 'folders', 'document', 'environment', 'fresh', 'scheduled'],
  ...['answer', 'several', 'close'],
  ...['names', 'taken', 'echo', 'halves', 'order', 'unknown', 'malformed', 'errors'],
  ...['cron', 'interval', 'once', 'own-chat', 'other-chat', 'other-chat-refused'],
  ...['context', 'bad-schedule', 'pause', 'resume', 'cancel', 'manage-others', 'manage-others-refused'],
  ...['register', 'register-taken', 'register-folder', 'register-refused', 'refresh', 'refresh-refused'],
  ...['tasks-shape', 'tasks-main', 'tasks-own', 'tasks-live', 'groups-main', 'groups-others', 'readonly'],
] as const

/** Those that are spoken to while they run. */
export const conversations = ['close-first', 'close-last', 'close-before'] as const

/** Those that say what they have to say in files, and not only by printing. */
export const messengers = ['message', 'elsewhere', 'elsewhere-refused', 'claims'] as const
