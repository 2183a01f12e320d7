import type { Rule } from '../types.ts'

const remote =
  /^(?:push|fetch|pull|clone|remote|ls-remote|submodule|send-email|svn|p4|lfs|archive|daemon|credential|imap-send|http-.*|fetch-pack|send-pack|request-pull|instaweb|cvs.*|upload-.*|receive-pack)$/

/**
 * Even `git status` runs what the settings of the repository name: a pager, a file system monitor, filters, hooks. The
 * settings lie where the agent writes, so no git command is harmless.
 */
export const judgeGit: Rule = ({ name, args, judging }) => {
  const command = args.find(argument => argument.text === undefined || !argument.text.startsWith('-'))
  if (command === args[0] && remote.test(command?.text ?? ''))
    judging.note('network', `${name} can reach a network`)
  else judging.note('hidden', `${name} runs programs that a repository's settings name`)
}
