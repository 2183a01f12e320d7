import { Command, CommanderError } from 'commander'
import about from '../package.json' with { type: 'json' }
import { addAgents } from './commands/agents.ts'
import { addApprovals } from './commands/approvals.ts'
import { addAudit } from './commands/audit.ts'
import { addBackup } from './commands/backup.ts'
import { addChat } from './commands/chat.ts'
import { addCommands } from './commands/commands.ts'
import { addCompletion } from './commands/completion.ts'
import { addConfig } from './commands/config.ts'
import { addDemo } from './commands/demo.ts'
import { addDeploys } from './commands/deploys.ts'
import { addDoctor } from './commands/doctor.ts'
import { addErrors } from './commands/errors.ts'
import { addGroups } from './commands/groups.ts'
import { addImport } from './commands/import.ts'
import { addInit } from './commands/init.ts'
import { addJobs } from './commands/jobs.ts'
import { addMessages } from './commands/messages.ts'
import { addPassword } from './commands/password.ts'
import { addPost } from './commands/post.ts'
import { addQuestions } from './commands/questions.ts'
import { addRuns } from './commands/runs.ts'
import { addServices } from './commands/services.ts'
import { addStatus } from './commands/status.ts'
import { addSupervise } from './commands/supervise.ts'
import { addTail } from './commands/tail.ts'
import { addTaints } from './commands/taints.ts'
import { addTasks } from './commands/tasks.ts'
import { addUp } from './commands/up.ts'
import { addUsage } from './commands/usage.ts'
import { addWorktrees } from './commands/worktrees.ts'
import { complain, exitCodes } from './failure.ts'
import { quietBrokenPipe } from './output.ts'

/** Nothing heavy is imported before it is known which command runs. */
export async function main(args: readonly string[]): Promise<void> {
  quietBrokenPipe()
  // The way in may be a process of its own; it must not keep us alive.
  process.channel?.unref()
  const program = new Command('hatchway')
    .description('The hatch between sandboxed agents and their host.')
    .version(about.version)
    .exitOverride()
    .showHelpAfterError('Add --help to see how it is used.')
    .addHelpText(
      'after',
      `
Exit codes:
  0  done
  1  it failed
  2  the host refused it
  3  no answer came in time
  64 the command line makes no sense`,
    )
  for (const add of [
    addInit,
    addUp,
    addDemo,
    addSupervise,
    addDeploys,
    addStatus,
    addChat,
    addGroups,
    addAgents,
    addTasks,
    addJobs,
    addMessages,
    addRuns,
    addServices,
    addTaints,
    addUsage,
    addWorktrees,
    addApprovals,
    addQuestions,
    addAudit,
    addErrors,
    addPost,
    addCommands,
    addTail,
    addConfig,
    addDoctor,
    addBackup,
    addImport,
    addPassword,
    addCompletion,
  ])
    add(program)
  try {
    await program.parseAsync(args, { from: 'user' })
  } catch (error) {
    if (error instanceof CommanderError) {
      process.exitCode = error.exitCode === 0 ? exitCodes.done : exitCodes.usage
      return
    }
    complain(error)
  }
}
