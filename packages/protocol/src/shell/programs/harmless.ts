import { judgeTest } from '../conditions.ts'
import { isPathBelow, judgeWrite } from '../redirections.ts'
import type { Argument, Call, Rule } from '../types.ts'
import { awk } from './awk.ts'
import { find } from './find.ts'
import { anyArguments, strangeOption, unseenArguments, withOptions } from './options.ts'
import { printf } from './printf.ts'
import { sed } from './sed.ts'
import { bash, plainShell } from './shells.ts'
import { env, nice, nohup, stdbuf, timeout, xargs } from './wrappers.ts'

/** They show or compare what is there. None has an option, in GNU, busybox or BSD, that writes, runs or connects. */
const onlyShow = `
  ls dir vdir cat tac head tail wc cut tr nl rev fold fmt expand unexpand paste comm join
  cksum sum md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum
  basename dirname realpath readlink stat du df seq sleep id whoami groups uname arch nproc tty printenv
  cal factor expr numfmt od hexdump hd column cmp tsort uptime free ps which jq echo true false pwd
`

const grepOptions: Rule = withOptions({
  letters: 'EFGPivwxnHhlLcoqsrRabIUTy',
  valued: 'ABCmfdD',
  free: 'e',
  numbers: true,
  long: `extended-regexp fixed-strings basic-regexp perl-regexp ignore-case no-ignore-case invert-match word-regexp
 line-regexp line-number with-filename no-filename files-with-matches files-without-match count only-matching quiet silent
 no-messages recursive dereference-recursive text byte-offset color colour color= colour= include= exclude= exclude-dir=
 exclude-from= regexp= file= max-count= after-context= before-context= context= binary-files= devices= directories= label=
 line-buffered initial-tab help version`.replace(/\n/g, ''),
  runs: 'filter pager view Q',
})

/** A program's own grep is harmless whatever it is told; a shell may have a function of that name that knows more options. */
const grep: Rule = call => {
  if (call.by === 'shell') grepOptions(call)
}

const rg = withOptions({
  letters: 'FHILNPSUVachilnopqsuvwx0.',
  valued: 'ABCEMdfgjmrtT',
  free: 'e',
  long: `after-context= before-context= context= case-sensitive color= column count count-matches encoding= file= files
 files-with-matches files-without-match fixed-strings follow glob= glob-case-insensitive iglob= heading hidden ignore-case
 invert-match json line-number line-regexp max-columns= max-count= max-depth= max-filesize= multiline multiline-dotall
 no-config no-filename no-heading no-ignore no-ignore-vcs no-line-number no-messages null only-matching passthru pcre2
 pretty quiet regexp= replace= smart-case sort= sortr= stats text threads= trim type= type-list type-not= unrestricted
 version vimgrep with-filename word-regexp`.replace(/\n/g, ''),
  runs: 'pre pre-glob hostname-bin search-zip z',
})

const sort = withOptions({
  letters: 'bdfgiMhnRrVcCmsuz',
  valued: 'kSt',
  long: `ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting month-sort
 human-numeric-sort numeric-sort random-sort reverse sort= version-sort check check= merge stable unique zero-terminated key=
 field-separator= buffer-size= parallel= debug`.replace(/\n/g, ''),
  runs: 'compress-program',
})

/** The second file that uniq and xxd are given is one they write. */
const onlyReadsFirst = (operands: readonly Argument[], call: Call): void => {
  if (operands.length > 1 || operands.some(operand => !operand.single))
    call.judging.note('unknown', `${call.name} may write a file`)
}

const date = withOptions({
  letters: 'uRI',
  valued: 'dr',
  free: 'd',
  long: 'utc universal date= reference= iso-8601 iso-8601= rfc-3339= rfc-email',
  // Without the plus it sets the clock.
  operands(operands, call) {
    if (operands.some(operand => !operand.head.startsWith('+'))) strangeOption(call)
  },
})

const everyOperand =
  (isFine: (path: string) => boolean): ((operands: readonly Argument[], call: Call) => void) =>
  (operands, call) => {
    for (const { text } of operands) {
      if (text === undefined) unseenArguments(call)
      else if (!isFine(text))
        call.judging.note('unknown', `${call.name} writes elsewhere than below the working directory`)
    }
  }

const writesText = (operands: readonly Argument[], call: Call): void => {
  for (const { text } of operands) {
    if (text === undefined) unseenArguments(call)
    else if (text !== '/dev/null') judgeWrite(text, call.judging)
  }
}

export const harmlessPrograms: ReadonlyMap<string, Rule> = new Map<string, Rule>([
  ...onlyShow
    .trim()
    .split(/\s+/)
    .map((name): [string, Rule] => [name, anyArguments]),
  ['[', judgeTest],
  ['test', judgeTest],
  ['printf', printf],
  ['grep', grep],
  ['egrep', grep],
  ['fgrep', grep],
  ['rg', rg],
  ['sort', sort],
  [
    'uniq',
    withOptions({
      letters: 'cdDiuz',
      valued: 'fsw',
      long: 'count repeated unique ignore-case skip-fields= skip-chars= check-chars= zero-terminated',
      operands: onlyReadsFirst,
    }),
  ],
  ['xxd', withOptions({ letters: 'abEipu', valued: 'cgls', operands: onlyReadsFirst })],
  [
    'shuf',
    withOptions({
      letters: 'erz',
      valued: 'in',
      long: 'echo repeat zero-terminated input-range= head-count=',
    }),
  ],
  [
    'diff',
    withOptions({
      letters: 'abBcdeEiNnpqrstTuwyZ',
      valued: 'UCWIxFL',
      long: `unified unified= context context= brief report-identical-files side-by-side width= left-column
 suppress-common-lines recursive new-file ignore-case ignore-all-space ignore-space-change ignore-blank-lines
 ignore-trailing-space ignore-matching-lines= strip-trailing-cr text minimal color color= exclude= normal`.replace(
        /\n/g,
        '',
      ),
      runs: 'paginate l',
    }),
  ],
  [
    'file',
    withOptions({
      letters: 'bhiLNkp',
      long: 'brief mime mime-type mime-encoding dereference no-pad no-dereference',
    }),
  ],
  [
    'tree',
    withOptions({
      letters: 'adfhisDFpugCnrtvS',
      valued: 'LPI',
      long: 'noreport dirsfirst gitignore prune du si',
    }),
  ],
  [
    'strings',
    withOptions({ letters: 'af', valued: 'nte', long: 'all print-file-name bytes= radix= encoding=' }),
  ],
  ['base64', withOptions({ letters: 'd', valued: 'w', long: 'decode wrap= ignore-garbage' })],
  ['date', date],
  ['find', find],
  ['sed', sed],
  ['awk', awk],
  ['gawk', awk],
  ['mawk', awk],
  ['nawk', awk],
  ['tee', withOptions({ letters: 'ai', long: 'append', operands: writesText })],
  ['touch', withOptions({ letters: 'acm', operands: writesText })],
  ['mkdir', withOptions({ letters: 'pv', long: 'parents verbose', operands: everyOperand(isPathBelow) })],
  ['env', env],
  ['xargs', xargs],
  ['timeout', timeout],
  ['nice', nice],
  ['nohup', nohup],
  ['stdbuf', stdbuf],
  ['bash', bash],
  ['sh', plainShell],
  ['dash', plainShell],
])
