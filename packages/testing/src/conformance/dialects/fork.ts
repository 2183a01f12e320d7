import { always, type Column, conversations, messengers } from './types.ts'

/** Its own page describes the files; it is started and spoken to as NanoClaw is. */
export const fork: Column = {
  id: 'fork',
  title: 'NanoClaw fork',
  dialect: 'nanoclaw',
  names: /^\d{13}-[0-9a-z]{1,6}\.json$/,
  temporary: /^\d{13}-[0-9a-z]{1,6}\.json\.tmp$/,
  contextDefault: 'isolated',
  has: [
    // It names no target: a task is always for its own chat.
    ...always.filter(id => id !== 'other-chat' && id !== 'other-chat-refused'),
    ...conversations,
    ...messengers,
    ...['session', 'isolated', 'idle', 'error', 'who', 'followup'],
    ...['temporary', 'sender', 'once-local', 'task-model', 'update', 'update-status', 'number', 'unasked'],
  ] as const,
}
