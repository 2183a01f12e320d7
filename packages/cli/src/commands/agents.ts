import { readFile } from 'node:fs/promises'
import type { Command } from 'commander'
import { when } from '../list.ts'
import { type CommonOptions, common } from '../options.ts'
import { printJson, printLine } from '../output.ts'
import { withClient } from '../session.ts'
import { visible } from '../text.ts'

interface CreateOptions extends CommonOptions {
  cron: string
  prompt: string
  instructions?: string
  chat?: string
  isolated?: boolean
}

export function addAgents(program: Command): void {
  const agents = program.command('agents').description('agents that are woken by a schedule of their own')

  common(
    agents
      .command('create')
      .description('make a group, its folder and the task that wakes it; the same name again changes it'),
    'agents create "Morning news" --cron "0 7 * * *" --prompt "What is new in the inbox?"',
  )
    .argument('<name>', 'what it is called; its folder is named after it')
    .requiredOption('--cron <expression>', 'when it is woken')
    .requiredOption('--prompt <text>', 'what it is told then')
    .option('--instructions <file>', 'what it always knows, from a file')
    .option('--chat <jid>', 'the chat it reports to; left out: one of its own')
    .option('--isolated', 'each run begins without what was said before')
    .action(async (name: string, options: CreateOptions) => {
      const instructions =
        options.instructions === undefined ? undefined : await readFile(options.instructions, 'utf8')
      const agent = await withClient(options, (client, api) =>
        client.post(
          '/periodic-agents',
          {
            name,
            schedule: options.cron,
            prompt: options.prompt,
            instructions,
            jid: options.chat,
            ...(options.isolated ? { context_mode: 'isolated' } : {}),
          },
          api.periodicAnswer,
        ),
      )
      if (options.json) return printJson(agent)
      await printLine(
        `The agent ${visible(name)} is ${agent.status}: folder ${visible(agent.folder)}, chat ${visible(agent.jid)}, task ${agent.task_id}, woken next ${when(agent.next_run)}.`,
      )
    })

  common(
    agents.command('reset').description('have a group’s agent begin anew; the chat’s history stays'),
    'agents reset family --message "Begin with the shopping list."',
  )
    .argument('<folder>')
    .option('--message <text>', 'what the next session begins with; left out: it waits to be called')
    .action(async (folder: string, options: CommonOptions & { message?: string }) => {
      const result = await withClient(options, (client, api) =>
        client.post(
          `/groups/${encodeURIComponent(folder)}/reset`,
          { message: options.message },
          api.resultAnswer,
        ),
      )
      if (options.json) return printJson(result)
      await printLine(`The agent of ${visible(folder)} begins anew.`)
    })

  common(
    agents.command('finish').description('end the scheduled run of a group as done'),
    'agents finish family',
  )
    .argument('<folder>')
    .action(async (folder: string, options: CommonOptions) => {
      const result = await withClient(options, (client, api) =>
        client.post(`/groups/${encodeURIComponent(folder)}/finish`, undefined, api.resultAnswer),
      )
      if (options.json) return printJson(result)
      await printLine(`The scheduled run of ${visible(folder)} counts as done.`)
    })
}
