import { always, type Column, conversations, messengers } from './types.ts'

/** Version 1 of Hatchway's own protocol, spoken by a program that has nothing of Hatchway's in it. */
export const hatchway: Column = {
  id: 'hatchway',
  title: 'Hatchway 1',
  dialect: 'hatchway',
  names: /^\d{13}-\d{6}-[0-9a-f]{8}\.json$/,
  temporary: /^\.\d{13}-\d{6}-[0-9a-f]{8}\.json\.tmp$/,
  contextDefault: 'group',
  has: [
    ...always,
    ...conversations,
    ...messengers,
    ...['session', 'isolated', 'script', 'idle', 'error', 'stream', 'followup', 'temporary', 'sender'],
    ...['reaction', 'reaction-last', 'once-local', 'task-id', 'task-script', 'task-model', 'context-default'],
    ...['update', 'update-script', 'update-status', 'unregister', 'tasks-host', 'todos', 'services'],
    ...['result', 'failure', 'memory', 'calendar', 'question', 'shell-allow', 'shell-deny'],
    ...['merge-success', 'merge-failure', 'receipt', 'receipt-refused', 'progress', 'take-back', 'repeat'],
    ...['job', 'job-refused', 'periodic', 'periodic-refused', 'deploy', 'deploy-refused'],
    ...['reset', 'reset-message', 'finished'],
  ] as const,
}
