import { always, type Column, conversations, messengers } from './types.ts'

export const nanoclaw: Column = {
  id: 'nanoclaw',
  title: 'NanoClaw',
  dialect: 'nanoclaw',
  names: /^\d{13}-[0-9a-z]{1,6}\.json$/,
  documentNames: /^(message|task)-\d{13}\.json$/,
  temporary: /^\d{13}-[0-9a-z]{1,6}\.json\.tmp$/,
  contextDefault: 'isolated',
  has: [
    ...always,
    ...conversations,
    ...messengers,
    ...['session', 'isolated', 'script', 'idle', 'error', 'who', 'followup'],
    ...['names-document', 'temporary', 'sender', 'reaction', 'reaction-last'],
    ...['once-local', 'task-id', 'task-script', 'context-default', 'context-bad', 'update', 'update-script'],
    ...['register-config', 'register-mounts'],
    ...['skill', 'skill-failure', 'unasked'],
  ] as const,
}
