import { environmentOf, foreign, readPlainly, stdinOf } from './foreign.ts'
import type { ContainerProtocol } from './types.ts'

export const mdclaw: ContainerProtocol = {
  ...foreign,
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
  // It prints these words itself when its agent fails, for example without a model, and exits with 0. An answer of the
  // model that begins with the same words counts as a failure too: nothing tells them apart.
  createReader: readPlainly('NANOCLAW', 'I encountered an error: '),
  mayGoOn: true,
}
