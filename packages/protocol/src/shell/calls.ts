import { builtins } from './programs/builtins.ts'
import { harmlessPrograms } from './programs/harmless.ts'
import { kindOf } from './programs/known.ts'
import type { Argument, Judging, Runner } from './types.ts'

/** One command: which program it is, and what that program does with these arguments. */
export function judgeCall(words: readonly Argument[], by: Runner, judging: Judging) {
  const [first, ...args] = words
  const written = first?.text
  if (!first || written === undefined || !first.single)
    return judging.note('hidden', 'which program runs is decided only when it runs')
  if (!first.bare) judging.note('hidden', 'the name of a program is disguised')
  if (!/^[\w./+:[-]{1,64}$/.test(written)) return judging.note('hidden', 'the name of a program is unusual')
  judging.ran(written)

  const place = written.lastIndexOf('/') + 1
  const name = written.slice(place)
  if (place > 0 && !/^\/(?:usr\/)?bin\/$/.test(written.slice(0, place)))
    judging.note('hidden', 'it runs a file by its path, and what is in the file cannot be seen')
  const runner = place > 0 ? 'program' : by
  const rule =
    (runner === 'shell' ? builtins.get(name) : undefined) ?? harmlessPrograms.get(name) ?? kindOf(name)
  if (rule) rule({ name, args, by: runner, judging })
  else judging.note('unknown', `${name} is not a program on the list`)
}
