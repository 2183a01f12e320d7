import { payloads } from '@hatchway/protocol'
import { refused } from '../../base/outcome.ts'
import { storeWork } from '../../commands/requests.ts'
import { type CommandContext, defineCommand } from '../../commands/types.ts'
import { seenBy } from '../../guard/guard.ts'
import type { Deploys } from './deploys.ts'
import { deployContext } from './input.ts'

/** What a deploy has called must not call the next one, or nobody would be asked ever again. */
const calledByDeploy = ({ actor, host }: CommandContext): boolean =>
  actor.kind === 'group' && host?.runOf(actor.group.folder)?.isByDeploy === true

/** What the agent tells its next run, or the session it goes on with, comes from what it has read. */
function noteTold(told: string | undefined, context: CommandContext): void {
  const { actor, guard, request, transaction, now } = context
  if (told === undefined || !guard || !request || actor.kind !== 'group') return
  const { folder } = actor.group
  const seen = seenBy(folder, guard, context)
  transaction.addTaint(folder, deployContext(request.seq), seen, 'deploy', now.getTime())
}

/** `deploys` are undefined where no daemon runs. */
export const deployCommand = (deploys: Pick<Deploys, 'work' | 'problem'> | undefined) =>
  defineCommand({
    type: 'deploy',
    payload: payloads.deploy,
    permission: { main: 'any', others: 'never' },
    target: () => 'host',
    guard({ rebuild, head, resume_prompt, session_id }, context) {
      // What is refused anyway is refused at once.
      if (context.host?.workMs('deploy') === undefined || calledByDeploy(context)) return 'local'
      return {
        action: {
          name: 'deploy',
          summary: `restart this host with the code that is checked out${rebuild ? ', built anew' : ''}`,
          payload: { rebuild, head, resume_prompt, session_id },
        },
        reach: 'both',
        reads: { corrupted: false, secret: false },
      }
    },
    offer: ({ main }) =>
      main && deploys?.work ? { command: 'deploy', timeout_ms: deploys.work.timeoutMs } : undefined,
    execute({ rebuild, head, resume_prompt, session_id }, context) {
      if (calledByDeploy(context)) {
        return refused(
          'wrong_state',
          'A deploy has called this run, and nobody else has. Another deploy has to be asked for by a person first.',
        )
      }
      noteTold(resume_prompt ?? session_id, context)
      return storeWork(
        {
          name: 'deploy',
          input: { rebuild, head, resume_prompt, session_id, is_answered: context.request?.reply != null },
          otherwise: deploys?.problem ?? 'Only a daemon that runs can be deployed.',
        },
        context,
      )
    },
  })
