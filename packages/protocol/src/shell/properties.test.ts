import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { judgeShell } from './judge.ts'
import { corpus } from './testing/corpus/index.ts'

const harmless = corpus.filter(entry => entry.harmless).map(({ command }) => command)
const bad = corpus.filter(entry => !entry.harmless).map(({ command }) => command)
/** What can stand inside other commands without changing where they end. */
const whole = corpus.filter(entry => !entry.harmless && entry.whole).map(({ command }) => command)

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
const ansi = (text: string): string =>
  `$'${[...text].map(letter => (/[\w ]/.test(letter) ? letter : `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`)).join('')}'`

/** Around text that is a shell command of its own. */
const around: readonly ((command: string) => string)[] = [
  command => `(${command}\n)`,
  command => `{ ${command}\n}`,
  command => `! { ${command}\n}`,
  command => `time (${command}\n)`,
  command => `{ ${command}\n} &`,
  command => `{ ${command}\n} | cat`,
  command => `ls | {\n${command}\n}`,
  command => `ls && {\n${command}\n}`,
  command => `if true; then\n${command}\nfi`,
  command => `if ls\n${command}\nthen pwd; fi`,
  command => `for x in a b; do\n${command}\ndone`,
  command => `while true; do\n${command}\ndone`,
  command => `case a in b) ls;; *)\n${command}\n;; esac`,
  command => `{ ${command}\n} > out.txt 2>&1`,
  command => `echo $(\n${command}\n)`,
  command => `echo "$(\n${command}\n)"`,
  command => `cat <(\n${command}\n)`,
  command => `x=$(\n${command}\n)`,
  command => `cat <<E\n$(\n${command}\n)\nE`,
]

/** Handed over as a word. */
const handedOver: readonly ((command: string) => string)[] = [
  command => `bash -c ${quoted(command)}`,
  command => `sh -c ${quoted(command)}`,
  command => `bash -c ${ansi(command)}`,
  command => `env x=1 bash -c ${quoted(command)}`,
  command => `timeout 5 nice bash -ec ${quoted(command)} _ a`,
  command => `ls | xargs bash -c ${quoted(command)}`,
  command => `find . -exec bash -c ${quoted(command)} \\;`,
  command => `eval ${quoted(command)}`,
  command => `echo ${quoted(command)} | bash`,
  command => `trap ${quoted(command)} EXIT`,
  command => `bash <<< ${quoted(command)}`,
  command => `command bash -c ${quoted(command)}`,
]

/** The first word written in another way. */
const disguises: readonly ((name: string, at: number) => string)[] = [
  (name, at) => `${name.slice(0, at)}\\${name.slice(at)}`,
  (name, at) => `${name.slice(0, at)}''${name.slice(at)}`,
  (name, at) => `${name.slice(0, at)}""${name.slice(at)}`,
  (name, at) => `${name.slice(0, at)}\\\n${name.slice(at)}`,
  name => quoted(name),
  name => `"${name}"`,
  name => ansi(name),
  name => `$'${[...name].map(letter => `\\x${letter.charCodeAt(0).toString(16)}`).join('')}'`,
  name => `$(echo ${name})`,
  name => `\`echo ${name}\``,
  name => `x=${name}; $x`,
  (name, at) => `x=${name.slice(0, at)}; \${x}${name.slice(at)}`,
  name => `{${name},}`,
  (name, at) => `${name.slice(0, at)}$y${name.slice(at)}`,
  (name, at) => `${name.slice(0, at)}[${name.charAt(at)}]${name.slice(at + 1)}`,
  name => `env ${name}`,
  name => `x=1 ${name}`,
  name => `2>&1 ${name}`,
]

const pieces = [
  ...'"\'`$(){}[]<>|&;\\\n\t #!~*?=-,.:@%+^',
  ...[
    'curl',
    'ls',
    'echo ',
    'x',
    '$x',
    '${x',
    '$(',
    '<(',
    '<<E\n',
    '\nE\n',
    '&&',
    '||',
    ';;',
    '[[ ',
    ' ]]',
    '((',
    '))',
  ],
  ...[
    'if ',
    '; then ',
    '; fi',
    'for x in ',
    '; do ',
    '; done',
    'case a in ',
    ' esac',
    'bash -c ',
    'xargs ',
    'find . -exec ',
  ],
]

describe('whatever it is dressed up as', () => {
  it('a command that is not harmless does not become harmless', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...whole),
        fc.array(fc.constantFrom(...around, ...handedOver), { minLength: 1, maxLength: 4 }),
        (command, layers) => {
          expect(judgeShell(layers.reduce((text, layer) => layer(text), command)).harmless).toBe(false)
        },
      ),
      { numRuns: 3_000 },
    )
  })

  it('broken text handed to a shell does not become harmless', () => {
    fc.assert(
      fc.property(fc.constantFrom(...bad), fc.constantFrom(...handedOver), (command, layer) => {
        expect(judgeShell(layer(command)).harmless).toBe(false)
      }),
      { numRuns: 2_000 },
    )
  })

  it('a disguised name of a program is not harmless', () => {
    fc.assert(
      fc.property(
        fc.constantFrom('curl', 'wget', 'ssh', 'bash', 'python3', 'rm', 'frobnicate'),
        fc.constantFrom(...disguises),
        fc.nat(),
        fc.constantFrom('', ' x', ' -o x y', ' | ls', ' > out.txt'),
        (name, disguise, place, rest) => {
          const text = disguise(name, 1 + (place % (name.length - 1)))
          expect(judgeShell(`${text}${rest}`).harmless).toBe(false)
          expect(judgeShell(`ls; ${text}${rest}`).harmless).toBe(false)
        },
      ),
      { numRuns: 2_000 },
    )
  })

  it('harmless commands before or after do not make it harmless', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...whole),
        fc.constantFrom(...harmless),
        fc.constantFrom('; ', '\n', ' && ', ' || ', ' | ', ' & '),
        (command, other, between) => {
          expect(judgeShell(`${command}${between}${other}`).harmless).toBe(false)
          expect(judgeShell(`${other}\n${command}`).harmless).toBe(false)
        },
      ),
      { numRuns: 3_000 },
    )
  })

  it('harmless commands one after the other stay harmless', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...harmless), { minLength: 2, maxLength: 4 }), commands => {
        expect(judgeShell(commands.join('\n')).harmless).toBe(true)
      }),
      { numRuns: 500 },
    )
  })
})

describe('any text at all', () => {
  const soup = fc
    .array(fc.oneof(fc.constantFrom(...pieces), fc.string()), { maxLength: 40 })
    .map(parts => parts.join(''))

  it('gets a verdict, and always the same one', () => {
    fc.assert(
      fc.property(fc.oneof(soup, fc.string({ unit: 'binary', maxLength: 200 })), text => {
        const verdict = judgeShell(text)
        expect('reason' in verdict).toBe(!verdict.harmless)
        expect(judgeShell(text)).toEqual(verdict)
      }),
      { numRuns: 5_000 },
    )
  })

  it('that holds a program that is not on the list is not harmless', () => {
    fc.assert(
      fc.property(soup, text => {
        expect(judgeShell(`${text}\nfrobnicate`).harmless && !isQuoted(text)).toBe(false)
      }),
      { numRuns: 3_000 },
    )
  })
})

/** The last line may be data: then something before it began a quote, a comment that goes on, or a here-document. */
const isQuoted = (text: string): boolean => /['"`\\]|<</.test(text)
