import type { Assignment } from 'unbash'
import type { Argument, Judging } from './types.ts'

/**
 * Names in capitals belong to the system: PATH, IFS, LD_PRELOAD, BASH_ENV, PROMPT_COMMAND, PAGER and hundreds more decide
 * what runs. No harmless program and no shell looks at a name in small letters, but for these.
 */
const isHarmlessVariable = (name: string): boolean =>
  /^[a-z_][a-z0-9_]*$/.test(name) && !['_', 'histchars', 'auto_resume'].includes(name)

/** Language, time zone and width change how things are shown, as long as they are plain names. */
const display = /^(?:LANG|LC_[A-Z]+|TZ|NO_COLOR|COLUMNS)$/
const displayValue = /^(?!.*\.\.)[A-Za-z0-9_][A-Za-z0-9_.@+/-]*$|^$/

export const isHarmlessEnvironment = (name: string, value: string | undefined): boolean =>
  isHarmlessVariable(name) || (display.test(name) && value !== undefined && displayValue.test(value))

/** A variable that gets a value that is not known: from a loop, from `read`, from `${name:=…}`. */
export function judgeVariable(name: string, judging: Judging) {
  if (!isHarmlessVariable(name)) judging.note('hidden', 'it sets a variable that may decide what runs')
}

/** `name=value`, alone or before a command. */
export function judgeAssignment(
  assignment: Assignment,
  value: Argument | undefined,
  command: string | undefined,
  judging: Judging,
) {
  if (assignment.index !== undefined || value === undefined)
    return judging.note('hidden', 'it sets a list, whose places the shell calculates and may run')
  // The usual way to read lines whole; it holds for `read` alone.
  if (assignment.name === 'IFS' && command === 'read' && value.text !== undefined && !assignment.append)
    return
  if (
    assignment.append
      ? !isHarmlessVariable(assignment.name)
      : !isHarmlessEnvironment(assignment.name, value.text)
  )
    judging.note('hidden', 'it sets a variable that may decide what runs')
}
