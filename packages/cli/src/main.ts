import { Command, CommanderError } from 'commander'
import about from '../package.json' with { type: 'json' }
import { complain, exitCodes } from './failure.ts'
import { quietBrokenPipe } from './output.ts'

/** In the order of `--help`, each with the file that adds it; that of two commands adds both. */
export const commands: Readonly<Record<string, () => Promise<(program: Command) => void>>> = {
  init: async () => (await import('./commands/init.ts')).addInit,
  up: async () => (await import('./commands/up.ts')).addUp,
  demo: async () => (await import('./commands/demo.ts')).addDemo,
  supervise: async () => (await import('./commands/supervise.ts')).addSupervise,
  deploy: async () => (await import('./commands/deploys.ts')).addDeploys,
  deploys: async () => (await import('./commands/deploys.ts')).addDeploys,
  status: async () => (await import('./commands/status.ts')).addStatus,
  chat: async () => (await import('./commands/chat.ts')).addChat,
  groups: async () => (await import('./commands/groups.ts')).addGroups,
  agents: async () => (await import('./commands/agents.ts')).addAgents,
  tasks: async () => (await import('./commands/tasks.ts')).addTasks,
  jobs: async () => (await import('./commands/jobs.ts')).addJobs,
  messages: async () => (await import('./commands/messages.ts')).addMessages,
  runs: async () => (await import('./commands/runs.ts')).addRuns,
  services: async () => (await import('./commands/services.ts')).addServices,
  taints: async () => (await import('./commands/taints.ts')).addTaints,
  usage: async () => (await import('./commands/usage.ts')).addUsage,
  worktrees: async () => (await import('./commands/worktrees.ts')).addWorktrees,
  approvals: async () => (await import('./commands/approvals.ts')).addApprovals,
  questions: async () => (await import('./commands/questions.ts')).addQuestions,
  audit: async () => (await import('./commands/audit.ts')).addAudit,
  errors: async () => (await import('./commands/errors.ts')).addErrors,
  post: async () => (await import('./commands/post.ts')).addPost,
  commands: async () => (await import('./commands/commands.ts')).addCommands,
  tail: async () => (await import('./commands/tail.ts')).addTail,
  config: async () => (await import('./commands/config.ts')).addConfig,
  doctor: async () => (await import('./commands/doctor.ts')).addDoctor,
  backup: async () => (await import('./commands/backup.ts')).addBackup,
  restore: async () => (await import('./commands/backup.ts')).addBackup,
  import: async () => (await import('./commands/import.ts')).addImport,
  password: async () => (await import('./commands/password.ts')).addPassword,
  completion: async () => (await import('./commands/completion.ts')).addCompletion,
}

/** Nothing is imported that the command does not need: help, and what is no command, need them all. */
const addersFor = async (name: string | undefined) => {
  const only = name !== undefined && name !== 'completion' && Object.hasOwn(commands, name) && commands[name]
  return new Set(await Promise.all(only ? [only()] : Object.values(commands).map(load => load())))
}

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
  for (const add of await addersFor(args[0])) add(program)
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
