/**
 * What an agent needs of git between two syncs, in plain words only. Git runs what a worktree's settings name, and the
 * agent writes those; but in a sandbox without a network that gets it nowhere, and an agent that has to ask a person for
 * each step of a rebase the host itself has begun would be stuck with it.
 */
const word = `(?:[\\w./@+,=:%-]+|'[^'\\n]*'|"[^"$\`\\\\!\\n]*")`
const path = `(?!-)${word}`
const paths = `(?: --)?(?: ${path})`
const steps = [
  'status(?: (?:-s|-sb|--short|--porcelain|--branch))*',
  `diff(?: (?:--name-only|--stat|--check|--cached|--staged|--ours|--theirs|--base))*(?:${paths}*)?`,
  `log(?: (?:-\\d{1,4}|--oneline|--stat))*`,
  `add(?: (?:-A|-u|--all|--update))*(?:${paths}+)?`,
  `rm(?: (?:-q|-r|--cached))*${paths}+`,
  `checkout (?:--ours|--theirs)${paths}+`,
  `commit(?: (?:-q|-a|--quiet|--all|--amend|--no-edit))*(?: (?:-m|-am|--message) ${word})*`,
  'rebase (?:--continue|--abort|--skip)',
]
const step = new RegExp(`^(?:cd ${path}|git(?: -C ${path})? (?:${steps.join('|')}))$`)

/** Whether a shell command is nothing but such steps. */
export const isSyncStep = (command: string): boolean =>
  command.length <= 10_000 &&
  command
    .trim()
    .split(/&&|;|\n/)
    .every(part => step.test(withoutBlanks(part)))

/** By hand: a pattern for blanks before something looks at a long run of them again from each of its places. */
function withoutBlanks(text: string): string {
  let [begin, end] = [0, text.length]
  while (text.charAt(begin) === ' ') begin++
  while (end > begin && text.charAt(end - 1) === ' ') end--
  return text.slice(begin, end)
}
