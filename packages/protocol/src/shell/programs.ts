import type { Word } from './words.ts'

/** What a program may be told. Whatever is not listed is not harmless: no option is matched by its beginning. */
interface Options {
  /** letters that stand alone or together */
  letters?: string
  /** letters that take a value, in the same word or the next one */
  valued?: string
  /** what follows such a letter in the same word are more letters: the value is always the next word */
  valueApart?: true
  /** long names; with `=` if they take a value, in the same word or the next one */
  long?: string
  /** `-5` */
  numbers?: true
  /** no option of the program writes, runs or connects, so a pattern may become one */
  anyOption?: true
  /** what speaks against the rest of the words */
  operands?: (operands: readonly Word[]) => string | undefined
}

/** What speaks against a command with these words; undefined: nothing. */
type Rule = (args: readonly Word[]) => string | undefined

const strange = 'is used with an option that is not on the list'
const unknown = 'is used in a way that is not on the list'
/** what a rule with a pattern looks at */
const longestText = 500

/** Reads options the way GNU programs do: they may stand anywhere before `--`. */
function options({ letters = '', valued = '', long = '', ...more }: Options): Rule {
  const names = new Set(long.split(/\s+/).filter(name => name !== ''))
  const isValue = (word: Word | undefined) => word && !word.isPattern && !word.text.startsWith('-')
  const isKnown = (text: string, next: Word | undefined): 'alone' | 'value' | undefined => {
    if (text.startsWith('--')) {
      const equals = text.indexOf('=')
      if (names.has(text.slice(2, equals < 0 ? undefined : equals + 1))) return 'alone'
      return names.has(`${text.slice(2)}=`) && isValue(next) ? 'value' : undefined
    }
    if (more.numbers && /^-\d{1,9}$/.test(text)) return 'alone'
    for (let at = 1; at < text.length; at++) {
      if (valued.includes(text.charAt(at))) {
        if (at < text.length - 1) return more.valueApart ? undefined : 'alone'
        return isValue(next) ? 'value' : undefined
      }
      if (!letters.includes(text.charAt(at))) return undefined
    }
    return 'alone'
  }
  return args => {
    const operands: Word[] = []
    for (let at = 0; at < args.length; at++) {
      const word = args[at] as Word
      if (word.text === '--' && !word.isPattern) {
        operands.push(...args.slice(at + 1))
        break
      }
      if (word.isPattern && !more.anyOption && !/^[^-*?]/.test(word.text)) return strange
      if (word.isPattern || word.text === '-' || !word.text.startsWith('-')) operands.push(word)
      else {
        const found = isKnown(word.text, args[at + 1])
        if (found === undefined) return strange
        if (found === 'value') at++
      }
    }
    return more.operands?.(operands)
  }
}

const anything: Rule = () => undefined
const nothing: Rule = options({ operands: operands => (operands.length > 0 ? unknown : undefined) })
const one =
  (isFine: RegExp): Rule =>
  args =>
    args.length === 1 && !args[0]?.isPattern && isFine.test(args[0]?.text ?? '') ? undefined : unknown

const grep = options({
  letters: 'EFGPivwxnHhlLcoqsrRabIUTy',
  valued: 'ABCmfe',
  numbers: true,
  long: `extended-regexp fixed-strings basic-regexp perl-regexp ignore-case no-ignore-case invert-match word-regexp
    line-regexp line-number with-filename no-filename files-with-matches files-without-match count only-matching quiet
    silent no-messages recursive dereference-recursive text byte-offset color color= include= exclude= exclude-dir=
    regexp= max-count= after-context= before-context= context=`,
})

const rg = options({
  letters: 'FHINPSUacilnopqsuvwx',
  valued: 'ABCMegmtT',
  long: `after-context= before-context= context= case-sensitive color= column count count-matches files files-with-matches
    files-without-match fixed-strings glob= heading hidden ignore-case iglob= invert-match json line-number max-columns=
    max-count= max-depth= multiline no-config no-filename no-heading no-ignore no-line-number only-matching quiet regexp=
    smart-case sort= stats type= type-not= with-filename word-regexp`,
})

const findAlone = new Set(
  `-empty -not ! ( ) -a -and -o -or -print -print0 -prune -depth -xdev -mount -ls -quit -true -false -readable -writable
   -executable -daystart`.split(/\s+/),
)
const findValued = new Set(
  `-name -iname -path -ipath -wholename -iwholename -lname -regex -iregex -regextype -type -size -atime -ctime -mtime -amin
   -cmin -mmin -newer -maxdepth -mindepth -perm -user -group -links -inum`.split(/\s+/),
)

/** Finds and names files, and does nothing with them. */
const find: Rule = args => {
  let at = 0
  while (/^-[HLP]$/.test(args[at]?.text ?? '')) at++
  while (at < args.length && /^[^-*?(),!]/.test(args[at]?.text ?? '')) at++
  for (; at < args.length; at++) {
    const { text, isPattern } = args[at] as Word
    if (isPattern) return strange
    if (findAlone.has(text)) continue
    const value = args[++at]
    if (!findValued.has(text) || !value || value.isPattern) return strange
  }
  return undefined
}

/** `5p`, `1,20p`, `$p`, `3q`: lines are shown. `s/a/b/g`, without brackets and escapes: they are shown changed. */
const sedShows = /^(?:\d{1,9}|\$)(?:,(?:\d{1,9}|\$))?[pq]$/
const sedChanges = /^s([/|,#])(?:(?!\1)[^\\\n[\]])+\1(?:(?!\1)[^\\\n[\]])*\1[gpI]{0,3}$/

const sed: Rule = args => {
  const rest = [...args]
  while (/^-[nEru]+$/.test(rest[0]?.text ?? '')) rest.shift()
  if (rest[0]?.text === '-e') rest.shift()
  const [script, ...files] = rest
  const text = script?.text ?? ''
  if (!script || script.isPattern || text.length > longestText) return unknown
  if (!text.split(';').every(command => sedShows.test(command.trim())) && !sedChanges.test(text))
    return unknown
  return files.every(file => /^[^-*?]/.test(file.text) || file.text === '-') ? undefined : strange
}

/** `-v` and `%n` set a variable, and some shells calculate with what they print as a number: only text is printed. */
const printf: Rule = ([format, ...args]) => {
  if (!format || format.isPattern || format.text.length > longestText || args.some(arg => arg.isPattern))
    return unknown
  const strangeFormat = /^-|%(?!%|-?\d{0,3}(?:\.\d{1,3})?[sbq])/
  return strangeFormat.test(format.text) ? unknown : undefined
}

const asksOne = /^-[abcdefghknoprstuwxzGLNOS]$/
const compares = /^(?:==?|!=|-(?:nt|ot|ef))$/
const comparesNumbers = /^-(?:eq|ne|lt|le|gt|ge)$/

/** What a shell calculates with it may run: no `-v` and `-R`, and numbers are compared with numbers. */
const test: Rule = args => {
  const words = args[0]?.text === '!' ? args.slice(1) : args
  if (words.some(word => word.isPattern)) return unknown
  const [first, second, third] = words
  if (words.length === 1) return undefined
  if (words.length === 2 && asksOne.test(first?.text ?? '')) return undefined
  if (words.length !== 3) return unknown
  if (compares.test(second?.text ?? '')) return undefined
  const areNumbers = [first, third].every(word => /^-?\d{1,15}$/.test(word?.text ?? ''))
  return areNumbers && comparesNumbers.test(second?.text ?? '') ? undefined : unknown
}
const bracket: Rule = args => (args.at(-1)?.text === ']' ? test(args.slice(0, -1)) : unknown)

const sums = options({ letters: 'bct', long: 'check quiet status' })
const number = one(/^\d{1,3}$/)

/** Every program that a harmless command may run, and what it may be told. */
export const programs: ReadonlyMap<string, Rule> = new Map<string, Rule>(
  Object.entries({
    ':': anything,
    true: anything,
    false: anything,
    echo: anything,
    pwd: options({ letters: 'LP' }),
    cd: args =>
      args.length <= 1 && !args[0]?.isPattern && !/^-./.test(args[0]?.text ?? '') ? undefined : unknown,
    exit: number,
    // Not `-x`: it shows a prompt for every command, and prompts may run commands.
    set: args =>
      /^-[eu]{1,2}(?:o pipefail)?$/.test(args.map(({ text }) => text).join(' ')) ? undefined : unknown,
    sleep: one(/^\d{1,5}(?:\.\d{1,3})?[smh]?$/),
    type: options({}),
    which: options({ letters: 'a' }),
    command: ([first, ...rest]) => (first?.text === '-v' && rest.length === 1 ? undefined : unknown),
    test,
    '[': bracket,
    printf,
    ls: options({
      letters: '1aAbBcCdfFgGhHiklLmnNopqQrRsStuUvxX',
      anyOption: true,
      long: 'all almost-all human-readable recursive reverse color color= directory size inode classify sort= time= full-time group-directories-first',
    }),
    cat: options({
      letters: 'AbeEnstTuv',
      anyOption: true,
      long: 'number number-nonblank show-all show-ends show-tabs',
    }),
    head: options({
      letters: 'qvz',
      valued: 'nc',
      numbers: true,
      anyOption: true,
      long: 'lines= bytes= quiet verbose',
    }),
    tail: options({
      letters: 'fFqvrz',
      valued: 'nc',
      numbers: true,
      anyOption: true,
      long: 'lines= bytes= quiet verbose follow',
    }),
    wc: options({ letters: 'clLmw', anyOption: true, long: 'lines words chars bytes max-line-length' }),
    nl: options({ letters: 'p', valued: 'bdfhilnsvw' }),
    rev: options({}),
    tac: options({}),
    tr: options({ letters: 'cCdst' }),
    cut: options({
      letters: 'nsz',
      valued: 'bcdf',
      long: 'bytes= characters= delimiter= fields= only-delimited complement output-delimiter=',
    }),
    paste: options({ letters: 'sz', valued: 'd', long: 'delimiters= serial' }),
    fold: options({ letters: 'bs', valued: 'w', numbers: true }),
    comm: options({ letters: '123iz' }),
    cmp: options({ letters: 'bls' }),
    sort: options({
      letters: 'bdfgiMhnRrVcCmsuz',
      valued: 'kt',
      long: 'ignore-case numeric-sort reverse sort= version-sort unique key= field-separator= stable human-numeric-sort',
    }),
    // A second file is one that it writes.
    uniq: options({
      letters: 'cdDiuz',
      valued: 'fsw',
      long: 'count repeated unique ignore-case skip-fields= skip-chars= check-chars=',
      operands: files => (files.length > 1 || files.some(file => file.isPattern) ? unknown : undefined),
    }),
    diff: options({
      letters: 'abBcdeEiNnpqrstTuwyZ',
      valued: 'UCWxL',
      long: `unified unified= context context= brief report-identical-files side-by-side width= suppress-common-lines
        recursive new-file ignore-case ignore-all-space ignore-space-change ignore-blank-lines strip-trailing-cr text
        color color= exclude=`,
    }),
    grep,
    egrep: grep,
    fgrep: grep,
    rg,
    find,
    sed,
    jq: options({
      letters: 'nrRsScCaMej',
      long: `arg argjson args slurp raw-output raw-input compact-output null-input exit-status tab sort-keys ascii-output
        join-output color-output monochrome-output`,
    }),
    basename: options({ letters: 'az', valued: 's' }),
    dirname: options({ letters: 'z' }),
    realpath: options({ letters: 'emsqzLP' }),
    readlink: options({ letters: 'efmnqsvz' }),
    stat: options({ letters: 'fLtxs', valued: 'c', long: 'format= printf= terse dereference file-system' }),
    du: options({
      letters: 'abchHkLmPsSx',
      valued: 'd',
      long: 'max-depth= all human-readable summarize total exclude= apparent-size',
    }),
    df: options({ letters: 'ahHiklPT', long: 'human-readable inodes print-type total' }),
    file: options({ letters: 'bhiLNk', long: 'brief mime mime-type mime-encoding dereference' }),
    tree: options({
      letters: 'adfhiDFpugCnrtvS',
      valued: 'LPI',
      valueApart: true,
      long: 'noreport dirsfirst gitignore prune',
    }),
    // Without the plus it sets the clock.
    date: options({
      letters: 'uR',
      valued: 'd',
      long: 'utc universal date= iso-8601 iso-8601= rfc-3339= rfc-email',
      operands: words => (words.every(({ text }) => text.startsWith('+')) ? undefined : unknown),
    }),
    md5sum: sums,
    sha1sum: sums,
    sha256sum: sums,
    sha512sum: sums,
    seq: options({ letters: 'w', valued: 'sf' }),
    id: options({ letters: 'ugGnr' }),
    whoami: nothing,
    uname: options({ letters: 'asnrvmpio' }),
    nproc: options({ long: 'all' }),
    ps: options({ letters: 'AaefFljuxwdN', valued: 'opC', long: 'forest' }),
    uptime: options({ letters: 'ps' }),
  } satisfies Record<string, Rule>),
)
