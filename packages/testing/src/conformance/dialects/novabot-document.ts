import { always, type Column, messengers } from './types.ts'

/** As its document says, which knows nothing of boxes: it is run once for each task, and ends. */
export const novabotDocument: Column = {
  id: 'novabot-document',
  title: 'NovaBot document',
  dialect: 'novabot',
  names: /^(\d{13}|(schedule|update|cancel|pause|resume|register|unregister|refresh)-[0-9a-f-]{36})\.json$/,
  contextDefault: 'isolated',
  has: [
    // It is not spoken to while it runs.
    ...always.filter(id => id !== 'several' && id !== 'close'),
    ...messengers.filter(id => id !== 'message'),
    ...['send-message', 'isolated', 'once-local', 'update', 'update-status', 'unregister', 'unasked'],
  ] as const,
}
