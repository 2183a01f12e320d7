import { environmentOf, foreign, readPlainly, stdinOf } from './foreign.ts'
import type { Framing } from './types.ts'

export const mdclaw: Framing = {
  ...foreign,
  dialect: 'mdclaw',
  mountPoint: '/ipc',
  // It works there, and keeps its transcripts there.
  groupAt: () => ['/data'],
  stdin: start =>
    JSON.stringify({
      ...stdinOf(start),
      sessionId: start.session_id ?? '',
      isScheduledTask: start.kind === 'task',
      // The field has to be there; keys stay on the host.
      secrets: {},
    }),
  environment: start => environmentOf('NANOCLAW', start),
  createReader: readPlainly('NANOCLAW'),
}
