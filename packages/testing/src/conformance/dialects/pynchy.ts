import { always, type Column, conversations, messengers } from './types.ts'

export const pynchy: Column = {
  id: 'pynchy',
  title: 'Pynchy',
  dialect: 'pynchy',
  names: /^\d{13}-[0-9a-f]{6}\.json$/,
  temporary: /^\d{13}-[0-9a-f]{6}\.json\.tmp$/,
  contextDefault: 'isolated',
  has: [
    ...always,
    ...conversations,
    ...messengers,
    ...['session', 'isolated', 'idle', 'error', 'stream', 'followup', 'temporary', 'sender'],
    ...['register-config', 'register-mounts', 'signal', 'tasks-host', 'todos', 'todo-done'],
    ...['result', 'failure', 'memory', 'calendar', 'question', 'shell-allow', 'shell-deny'],
    ...['merge-success', 'merge-failure', 'repeat', 'unasked'],
    ...['job', 'job-refused', 'periodic', 'periodic-refused', 'deploy', 'deploy-refused'],
    ...['reset', 'reset-message', 'finished'],
  ] as const,
}
