/**
 * How a shell was called, as far as it matters for what it will run. Written after the manual pages of bash and dash:
 * options first, alone or several letters in one word, `-o` and `-O` with a name in a word of its own; then the text
 * after `-c`, or a script's file, or neither, and what remains are `$0`, `$1`, …
 */
export interface Invocation {
  /** the words before the first that is none */
  options: readonly string[]
  source: 'text' | 'file' | 'input'
  /** the text or the file, then the parameters */
  operands: readonly string[]
  interactive: boolean
  login: boolean
  /** nothing among the options changes which commands run */
  plain: boolean
}

const named: ReadonlySet<string> = new Set(['errexit', 'nounset', 'pipefail'])

export function readInvocation(args: readonly string[]): Invocation {
  let at = 0
  let plain = true
  let letters = ''
  const take = (word: string) => {
    if (word.startsWith('--')) {
      if (word === '--login') letters += 'l'
      else if (word !== '--norc' && word !== '--noprofile') plain = false
      if (word === '--rcfile' || word === '--init-file') at++
      return
    }
    for (const letter of word.slice(1)) {
      letters += letter
      const value = letter === 'o' || letter === 'O' ? args[at++] : undefined
      const isPlain = letter === 'o' ? named.has(value ?? '') : 'ceuls'.includes(letter)
      plain &&= isPlain && word.startsWith('-')
    }
  }
  while (at < args.length) {
    const word = args[at] ?? ''
    if (!/^[-+]/.test(word) || word === '+') break
    at++
    if (word === '-' || word === '--') break
    take(word)
  }
  const operands = args.slice(at)
  const isText = letters.includes('c')
  const isInput = !isText && (letters.includes('s') || operands.length === 0)
  return {
    options: args.slice(0, at),
    source: isText ? 'text' : isInput ? 'input' : 'file',
    operands,
    interactive: letters.includes('i'),
    login: letters.includes('l'),
    plain,
  }
}

/** What a shell runs as code before anything else, or beside it, if it finds it in its environment. */
const runsAsCode = /^(?:BASH_ENV|SHELLOPTS|BASHOPTS|PS4|BASH_FUNC_.*)$/s

/**
 * The command line that says what will run, to be judged and asked about. The text alone where bash runs just that;
 * else the call in full, so that whatever else it brings along is judged with it.
 */
export function commandOf(options: {
  name: string
  invocation: Invocation
  /** the text that will run, wherever it comes from */
  text: string
  /** a login shell runs a file of the agent's own first */
  hasProfile: boolean
  variables: NodeJS.ProcessEnv
}): string {
  const { name, invocation, text, variables } = options
  const { source, operands } = invocation
  const code = Object.entries(variables).filter(([key, value]) => value && runsAsCode.test(key))
  const plain = invocation.plain && !(invocation.login && options.hasProfile)
  const parameters = source === 'text' ? operands.slice(1) : operands
  if (name === 'bash' && plain && code.length === 0 && parameters.length === 0) return text
  const environment = code.length === 0 ? [] : ['env', ...code.map(([key, value]) => `${key}=${value}`)]
  return [...environment, name, ...inFull()].map(quoted).join(' ')

  function inFull(): readonly string[] {
    if (!plain && source === 'text') return [...invocation.options, ...operands]
    // Parameters of a script on standard input begin with `$1`.
    const rest = source === 'input' && parameters.length > 0 ? [name, ...parameters] : parameters
    return [...(plain ? [] : invocation.options), '-c', text, ...rest]
  }
}

const quoted = (word: string): string =>
  /^[\w./:=@%+,-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
