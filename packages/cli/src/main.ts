import { Command, CommanderError } from 'commander'
import about from '../package.json' with { type: 'json' }
import type { CliCommand } from './command.ts'
import { exitCodes, reportFailure } from './failure.ts'
import { endWithReader } from './output.ts'
import { addPluginCommands } from './plugins.ts'
import summaries from './summaries.json' with { type: 'json' }

/** In the order of `--help`. A command's file is loaded when it is called. */
export const commands: Readonly<Record<string, () => Promise<{ default: CliCommand }>>> = {
  init: () => import('./commands/init.ts'),
  up: () => import('./commands/up.ts'),
  demo: () => import('./commands/demo.ts'),
  supervise: () => import('./commands/supervise.ts'),
  service: () => import('./commands/service.ts'),
  logs: () => import('./commands/logs.ts'),
  open: () => import('./commands/open.ts'),
  upgrade: () => import('./commands/upgrade.ts'),
  deploy: () => import('./commands/deploy.ts'),
  deploys: () => import('./commands/deploys.ts'),
  status: () => import('./commands/status.ts'),
  chat: () => import('./commands/chat.ts'),
  groups: () => import('./commands/groups.ts'),
  channels: () => import('./commands/channels.ts'),
  agents: () => import('./commands/agents.ts'),
  mcp: () => import('./commands/mcp.ts'),
  tasks: () => import('./commands/tasks.ts'),
  jobs: () => import('./commands/jobs.ts'),
  messages: () => import('./commands/messages.ts'),
  runs: () => import('./commands/runs.ts'),
  services: () => import('./commands/services.ts'),
  taints: () => import('./commands/taints.ts'),
  models: () => import('./commands/models.ts'),
  usage: () => import('./commands/usage.ts'),
  worktrees: () => import('./commands/worktrees.ts'),
  approvals: () => import('./commands/approvals.ts'),
  questions: () => import('./commands/questions.ts'),
  audit: () => import('./commands/audit.ts'),
  errors: () => import('./commands/errors.ts'),
  post: () => import('./commands/post.ts'),
  commands: () => import('./commands/commands.ts'),
  tail: () => import('./commands/tail.ts'),
  config: () => import('./commands/config.ts'),
  doctor: () => import('./commands/doctor.ts'),
  backup: () => import('./commands/backup.ts'),
  restore: () => import('./commands/restore.ts'),
  import: () => import('./commands/import.ts'),
  password: () => import('./commands/password.ts'),
  completion: () => import('./commands/completion.ts'),
}

/** Only lists the commands, or does not even do that. */
const listing: ReadonlySet<string | undefined> = new Set([
  undefined,
  'help',
  '-h',
  '--help',
  '-V',
  '--version',
])

/** One command needs its own file; completion and an unknown name need all of them. */
const filesFor = (name: string | undefined) => {
  const one = name !== undefined && name !== 'completion' && Object.hasOwn(commands, name) && commands[name]
  return Promise.all(one ? [one()] : Object.values(commands).map(load => load()))
}

export async function main(args: readonly string[]): Promise<void> {
  endWithReader()
  // An older Node may have started us, and its channel must not keep us alive.
  process.channel?.unref()
  const program = new Command('hatchway')
    .description('The hatch between sandboxed agents and their host.')
    .version(about.version)
    .exitOverride()
    .showHelpAfterError('Add --help for usage.')
    .addHelpText(
      'after',
      `
Exit codes:
  0  done
  1  failed
  2  refused by the host
  3  no answer in time
  64 invalid usage`,
    )
  if (args.length <= 1 && listing.has(args[0])) {
    for (const [term, summary] of Object.entries(summaries))
      program.addCommand(new Command(term).description(summary))
  } else {
    for (const { default: add } of await filesFor(args[0])) add(program)
  }
  try {
    await addPluginCommands(program, args, name => Object.hasOwn(commands, name))
    await program.parseAsync(args, { from: 'user' })
  } catch (error) {
    if (error instanceof CommanderError) {
      process.exitCode = error.exitCode === 0 ? exitCodes.done : exitCodes.usage
      return
    }
    reportFailure(error)
  }
}
