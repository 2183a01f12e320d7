import type { InputContext, InputMessage, Translation } from './dialect.ts'
import type { Group, Task } from './snapshots.ts'
import { translate } from './translate.ts'

/** For tests: a file goes the way it goes in the host, from text to translation. */
export const dropped = (directory: string, text: string): Translation => {
  const translation = translate(text, { directory, depth: 64 })
  if ('refusal' in translation) throw new Error(translation.refusal.message)
  return translation
}

/** As NanoClaw's, NovaBot's and Pynchy's writers put an object into a file. */
export const indented = (value: object): string => JSON.stringify(value, null, 2)

export const main: Group = {
  folder: 'main',
  jid: '1@g.us',
  name: 'Main',
  main: true,
  dialect: 'nanoclaw',
  trigger: null,
  requires_trigger: false,
  channel: null,
  added_at: '2026-01-01T00:00:00.000Z',
  last_activity: '2026-02-06T12:34:56.000Z',
}

export const family: Group = {
  ...main,
  folder: 'family-chat',
  jid: '2@g.us',
  name: 'Family Chat',
  main: false,
  trigger: '@Andy',
  requires_trigger: true,
  channel: 'whatsapp',
  last_activity: null,
}

export const mainTask: Task = {
  id: '1',
  group: 'main',
  jid: '1@g.us',
  created_by: 'main',
  prompt: 'Morning summary',
  script: './changed.sh',
  model: 'small',
  schedule_type: 'cron',
  schedule_value: '0 8 * * *',
  timezone: 'Europe/Berlin',
  context_mode: 'isolated',
  status: 'active',
  next_run: '2026-02-18T07:00:00.000Z',
  last_run: '2026-02-17T07:00:00.000Z',
  last_result: 'sent',
  created_at: '2026-02-01T00:00:00.000Z',
}

export const familyTask: Task = {
  ...mainTask,
  id: 'task-1769900000000-k3j9x2',
  group: 'family-chat',
  jid: '2@g.us',
  prompt: 'Water the plants',
  script: null,
  model: null,
  schedule_type: 'interval',
  schedule_value: '3600000',
  context_mode: 'group',
  status: 'paused',
  next_run: null,
  last_run: null,
  last_result: null,
}

const cancelledTask: Task = { ...familyTask, id: '3', status: 'cancelled' }

export const everyTask: readonly Task[] = [mainTask, familyTask, cancelledTask]

export const hello: InputMessage = {
  text: 'One more thing',
  sender: 'alice@example.com',
  sender_name: 'Alice',
  timestamp: '2026-02-06T12:35:00.000Z',
}

export const content = (file: { content: string } | undefined): unknown =>
  file === undefined ? undefined : JSON.parse(file.content)

export const inLisbon: InputContext = { timezone: 'Europe/Lisbon', notices: [] }
