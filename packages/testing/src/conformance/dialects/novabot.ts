import { always, type Column, conversations, messengers } from './types.ts'

/** As its code does. */
export const novabot: Column = {
  id: 'novabot',
  title: 'NovaBot',
  dialect: 'novabot',
  names: /^\d{13}-[0-9a-z]{1,6}\.json$/,
  temporary: /^\d{13}-[0-9a-z]{1,6}\.json\.tmp$/,
  contextDefault: 'isolated',
  has: [
    ...always,
    ...conversations,
    ...messengers,
    ...['session', 'isolated', 'ready', 'outbox', 'inbox', 'who', 'error', 'interrupt'],
    ...['temporary', 'sender', 'reply', 'reply-audio', 'speak', 'once-local', 'unasked'],
  ] as const,
}
