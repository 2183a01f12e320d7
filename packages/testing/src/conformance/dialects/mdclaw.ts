import { always, type Column, conversations } from './types.ts'

export const mdclaw: Column = {
  id: 'mdclaw',
  title: 'mdclaw',
  dialect: 'mdclaw',
  names: /^\d{13}-[0-9a-f]{8}\.json$/,
  temporary: /^\.\d{13}-[0-9a-f]{8}\.json\.tmp$/,
  contextDefault: 'group',
  has: [
    ...always,
    ...conversations,
    ...['plain', 'who', 'followup', 'temporary', 'context-default', 'source-group', 'unasked'],
  ] as const,
}
