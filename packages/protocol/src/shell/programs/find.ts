import { beginningWith } from '../arguments.ts'
import type { Argument, Call } from '../types.ts'
import { strangeOption, unseenArguments } from './options.ts'

const alone = new Set(
  `-empty -not ! ( ) -a -and -o -or , -print -print0 -prune -depth -d -xdev -mount -follow -ls -quit -true -false -readable
   -writable -executable -daystart -noleaf -nouser -nogroup -ignore_readdir_race -warn -nowarn`.split(/\s+/),
)
const valued =
  /^-(?:i?name|i?path|i?wholename|i?lname|i?regex|regextype|x?type|size|[acm](?:time|min)|[ac]?newer|newer[aBcm][aBcmt]|maxdepth|mindepth|perm|user|group|uid|gid|links|inum|samefile|used|fstype|printf)$/

/** Files are found and named. What it runs for each file is judged with a file name in the place of `{}`. */
export function find(call: Call) {
  const { args, judging } = call
  let at = 0
  while (/^-[HLP]$/.test(args[at]?.text ?? '')) at++
  while (at < args.length && isStart(args[at] as Argument)) at++
  while (at < args.length) {
    const { text } = args[at++] as Argument
    if (text === undefined) return unseenArguments(call)
    if (alone.has(text)) continue
    if (valued.test(text)) {
      const value = args[at++]
      if (value && !value.single) return unseenArguments(call)
      continue
    }
    if (text !== '-exec' && text !== '-execdir') {
      if (/^-ok/.test(text)) judging.note('hidden', 'find runs another program with that option')
      else strangeOption(call)
      return
    }
    const end = args.findIndex((argument, place) => place >= at && isEnd(argument, args[place - 1]))
    if (end < 0) return judging.note('unclear', 'where the command that find runs ends cannot be seen')
    // A word that is not known may be the one that ends the command.
    if (args.slice(at, end).some(word => word.text === undefined)) return unseenArguments(call)
    // Some give `-execdir` a bare name, which may begin with a dash.
    const words = args
      .slice(at, end)
      .map(word => withFileName(word, text === '-exec', args[end]?.text === ';'))
    judging.command(words, 'program')
    at = end + 1
  }
}

/** Where to look. It cannot be taken for an option, so the names of what is found there cannot either. */
const isStart = ({ text, head, plain }: Argument): boolean => plain && !/^[-(),!]/.test(head) && text !== ''

const isEnd = ({ text }: Argument, before: Argument | undefined): boolean =>
  text === ';' || (text === '+' && before?.text === '{}')

/** Before `+` there is not one name but as many as fit. */
function withFileName(argument: Argument, isPath: boolean, isOne: boolean): Argument {
  if (!argument.text?.includes('{}')) return argument
  const head = argument.text.slice(0, argument.text.indexOf('{}'))
  return { ...(head === '' ? beginningWith('', isPath) : beginningWith(head)), single: isOne }
}
