import { exitCodes, Failure } from './failure.ts'

/** What a shell needs to know of a command: nothing is asked of a daemon while somebody types. */
export interface Branch {
  name: string
  description: string
  options: readonly {
    long: string
    short: string
    description: string
    takesValue: boolean
    values: readonly string[]
    isPath: boolean
  }[]
  commands: readonly Branch[]
  /** of the first argument */
  values: readonly string[]
}

export const shells = ['bash', 'zsh', 'fish'] as const

export function completionFor(shell: string, program: Branch): string {
  switch (shell) {
    case 'bash':
      return bash(program)
    case 'zsh':
      return zsh(program)
    case 'fish':
      return fish(program)
    default:
      throw new Failure(
        `There is no completion for ${shell}; there is one for ${shells.join(', ')}.`,
        exitCodes.usage,
      )
  }
}

/** Every command with its way there, the program itself with an empty one. */
const all = (branch: Branch, path: readonly string[] = []): { path: string; branch: Branch }[] => [
  { path: path.join(' '), branch },
  ...branch.commands.flatMap(command => all(command, [...path, command.name])),
]

const wordsOf = ({ commands, options, values }: Branch): string =>
  [
    ...commands.map(({ name }) => name),
    ...values,
    ...options.flatMap(({ long, short }) => [long, short]).filter(word => word !== ''),
  ].join(' ')

/** Which command is meant: the words before the cursor that are names of commands, until one is not. */
const wayThere = (paths: string) => `  local path="" word
  for word in "\${words[@]:1:$((cword - 1))}"; do
    case " ${paths} " in
      *" \${path:+$path/}$word "*) path="\${path:+$path/}$word" ;;
    esac
  done`

const slashed = (path: string) => path.replaceAll(' ', '/')

function bash(program: Branch): string {
  const branches = all(program)
  const paths = branches.flatMap(({ path }) => (path === '' ? [] : [slashed(path)])).join(' ')
  const values = branches.flatMap(({ path, branch }) =>
    branch.options
      .filter(option => option.takesValue)
      .map(({ long, values: choices, isPath }) => {
        const answer =
          choices.length > 0
            ? `mapfile -t COMPREPLY < <(compgen -W "${choices.join(' ')}" -- "$cur")`
            : isPath
              ? 'mapfile -t COMPREPLY < <(compgen -f -- "$cur")'
              : 'COMPREPLY=()'
        return `    "${slashed(path)} ${long}") ${answer}; return ;;`
      }),
  )
  return `# hatchway for bash: put this into ~/.bashrc, or a file below bash-completion/completions.
_hatchway() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD - 1]}" cword=$COMP_CWORD
  local words=("\${COMP_WORDS[@]}")
${wayThere(paths)}
  case "$path $prev" in
${values.join('\n')}
  esac
  local known=""
  case "$path" in
${branches.map(({ path, branch }) => `    "${slashed(path)}") known="${wordsOf(branch)}" ;;`).join('\n')}
  esac
  mapfile -t COMPREPLY < <(compgen -W "$known" -- "$cur")
  [[ \${#COMPREPLY[@]} -eq 0 ]] && mapfile -t COMPREPLY < <(compgen -f -- "$cur")
}
complete -o filenames -F _hatchway hatchway
# npx hatchway, unless npx has a completion of its own.
_hatchway_npx() {
  COMPREPLY=()
  [[ $COMP_CWORD -ge 2 && "\${COMP_WORDS[1]}" == hatchway ]] || return 0
  COMP_WORDS=("\${COMP_WORDS[@]:1}")
  COMP_CWORD=$((COMP_CWORD - 1))
  _hatchway
}
complete -p npx &> /dev/null || complete -o default -o filenames -F _hatchway_npx npx
`
}

/** In single quotes, as both shells read them. */
const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
/** zsh gives colons and brackets a meaning of their own. */
const zshText = (text: string) => text.replaceAll(/[[\]:\\]/g, '\\$&')

function zsh(program: Branch): string {
  const functionOf = (path: string) => `_hatchway${path === '' ? '' : `_${path.replaceAll(/[ -]/g, '_')}`}`
  const parts = all(program).map(({ path, branch }) => {
    const options = branch.options.map(({ long, short, description, takesValue, values, isPath }) => {
      const names = [long, short].filter(name => name !== '')
      const value = takesValue
        ? values.length > 0
          ? `:value:(${values.join(' ')})`
          : isPath
            ? ':file:_files'
            : ':value:'
        : ''
      return names.map(name => `    ${quoted(`${name}[${zshText(description)}]${value}`)}`).join(' \\\n')
    })
    if (branch.commands.length === 0) {
      const rest = branch.values.length > 0 ? `'*:value:(${branch.values.join(' ')})'` : "'*:file:_files'"
      return `${functionOf(path)}() {\n  _arguments -s \\\n${[...options, `    ${rest}`].join(' \\\n')}\n}`
    }
    const names = branch.commands.map(
      ({ name, description }) => `    ${quoted(`${name}:${zshText(description)}`)}`,
    )
    const cases = branch.commands.map(
      ({ name }) => `    ${name}) ${functionOf(path === '' ? name : `${path} ${name}`)} ;;`,
    )
    return `${functionOf(path)}() {
  local line state
  local -a names=(
${names.join('\n')}
  )
  _arguments -C -s \\
${options.length > 0 ? `${options.join(' \\\n')} \\\n` : ''}    '1: :->command' \\
    '*::arg:->rest'
  case $state in
    command) _describe command names ;;
    rest)
      case $line[1] in
${cases.map(line => `    ${line}`).join('\n')}
      esac ;;
  esac
}`
  })
  return `#compdef hatchway
# hatchway for zsh: put this into a file _hatchway in a directory of $fpath.
${parts.join('\n\n')}

if [ "$funcstack[1]" = _hatchway ]; then _hatchway "$@"; else compdef _hatchway hatchway; fi
`
}

function fish(program: Branch): string {
  const lines = all(program).flatMap(({ path, branch }) => {
    const words = path === '' ? [] : path.split(' ')
    const seen = words.map(word => `__fish_seen_subcommand_from ${word}`)
    const names = branch.commands.map(({ name }) => name).join(' ')
    const condition = (more: readonly string[]) => {
      const all = [...seen, ...more]
      return all.length === 0 ? '' : ` -n ${quoted(all.join('; and '))}`
    }
    const notYet = path === '' ? ['__fish_use_subcommand'] : [`not __fish_seen_subcommand_from ${names}`]
    return [
      ...branch.commands.map(
        ({ name, description }) =>
          `complete -c hatchway -f${condition(notYet)} -a ${quoted(name)} -d ${quoted(description)}`,
      ),
      ...branch.values.map(value => `complete -c hatchway -f${condition([])} -a ${quoted(value)}`),
      ...branch.options.map(({ long, short, description, takesValue, values, isPath }) => {
        const value = !takesValue
          ? ''
          : values.length > 0
            ? ` -x -a ${quoted(values.join(' '))}`
            : isPath
              ? ' -r -F'
              : ' -x'
        const shortened = short === '' ? '' : ` -s ${short.slice(1)}`
        const spelled = long === '' ? '' : ` -l ${long.slice(2)}`
        return `complete -c hatchway${condition([])}${shortened}${spelled}${value} -d ${quoted(description)}`
      }),
    ]
  })
  return `# hatchway for fish: put this into ~/.config/fish/completions/hatchway.fish.\n${lines.join('\n')}\n`
}
