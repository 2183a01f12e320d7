import { usageError } from './failure.ts'

/** What a shell needs to know about a command. The scripts are complete: nothing runs while somebody types. */
export interface CompletedCommand {
  name: string
  description: string
  options: readonly CompletedOption[]
  commands: readonly CompletedCommand[]
  /** of the first argument */
  values: readonly string[]
}

interface CompletedOption {
  long: string
  short: string
  description: string
  takesValue: boolean
  values: readonly string[]
  isPath: boolean
}

interface Located {
  /** the words of the command; the program itself has none */
  path: readonly string[]
  command: CompletedCommand
}

const writers = { bash, zsh, fish }
export const shells = Object.keys(writers)

export function completionFor(shell: string, program: CompletedCommand): string {
  const writer = Object.entries(writers).find(([name]) => name === shell)?.[1]
  if (!writer) throw usageError(`There is no completion for ${shell}. Use one of ${shells.join(', ')}.`)
  return writer(allOf(program))
}

const allOf = (command: CompletedCommand, path: readonly string[] = []): Located[] => [
  { path, command },
  ...command.commands.flatMap(each => allOf(each, [...path, each.name])),
]

const namesOf = ({ long, short }: CompletedOption) => [long, short].filter(name => name !== '')

/** In single quotes, as every shell reads them. */
const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

function bash(all: readonly Located[]): string {
  const slashed = ({ path }: Located) => path.join('/')
  const paths = all.map(slashed).filter(path => path !== '')
  const valueCases = all.flatMap(located =>
    located.command.options
      .filter(option => option.takesValue)
      .map(({ long, values, isPath }) => {
        const words = values.length > 0 ? `-W "${values.join(' ')}"` : '-f'
        const reply =
          values.length > 0 || isPath
            ? `mapfile -t COMPREPLY < <(compgen ${words} -- "$cur")`
            : 'COMPREPLY=()'
        return `    "${slashed(located)} ${long}") ${reply}; return ;;`
      }),
  )
  const wordCases = all.map(located => {
    const { commands, values, options } = located.command
    const words = [...commands.map(({ name }) => name), ...values, ...options.flatMap(namesOf)]
    return `    "${slashed(located)}") known="${words.join(' ')}" ;;`
  })
  return `# hatchway for bash: add this to ~/.bashrc, or to a file in bash-completion/completions.
_hatchway() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD - 1]}" cword=$COMP_CWORD
  local words=("\${COMP_WORDS[@]}")
  local path="" word
  for word in "\${words[@]:1:$((cword - 1))}"; do
    case " ${paths.join(' ')} " in
      *" \${path:+$path/}$word "*) path="\${path:+$path/}$word" ;;
    esac
  done
  case "$path $prev" in
${valueCases.join('\n')}
  esac
  local known=""
  case "$path" in
${wordCases.join('\n')}
  esac
  mapfile -t COMPREPLY < <(compgen -W "$known" -- "$cur")
  [[ \${#COMPREPLY[@]} -eq 0 ]] && mapfile -t COMPREPLY < <(compgen -f -- "$cur")
}
complete -o filenames -F _hatchway hatchway
# npx hatchway, unless npx has its own completion.
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

/** Colons and brackets have a meaning in zsh's descriptions. */
const zshText = (text: string) => text.replaceAll(/[[\]:\\]/g, '\\$&')
const zshFunction = (path: readonly string[]) => ['_hatchway', ...path].join('_').replaceAll('-', '_')

function zshOption(option: CompletedOption): string {
  const { description, takesValue, values, isPath } = option
  const value = values.length > 0 ? `:value:(${values.join(' ')})` : isPath ? ':file:_files' : ':value:'
  return namesOf(option)
    .map(name => `    ${quoted(`${name}[${zshText(description)}]${takesValue ? value : ''}`)}`)
    .join(' \\\n')
}

function zshFunctionFor({ path, command }: Located): string {
  const options = command.options.map(option => `${zshOption(option)} \\\n`).join('')
  if (command.commands.length === 0) {
    const rest = command.values.length > 0 ? `'*:value:(${command.values.join(' ')})'` : "'*:file:_files'"
    return `${zshFunction(path)}() {\n  _arguments -s \\\n${options}    ${rest}\n}`
  }
  const names = command.commands.map(
    ({ name, description }) => `    ${quoted(`${name}:${zshText(description)}`)}`,
  )
  const cases = command.commands.map(({ name }) => `        ${name}) ${zshFunction([...path, name])} ;;`)
  return `${zshFunction(path)}() {
  local line state
  local -a names=(
${names.join('\n')}
  )
  _arguments -C -s \\
${options}    '1: :->command' \\
    '*::arg:->rest'
  case $state in
    command) _describe command names ;;
    rest)
      case $line[1] in
${cases.join('\n')}
      esac ;;
  esac
}`
}

function zsh(all: readonly Located[]): string {
  return `#compdef hatchway
# hatchway for zsh: save this as a file named _hatchway in a directory of $fpath.
${all.map(zshFunctionFor).join('\n\n')}

if [ "$funcstack[1]" = _hatchway ]; then _hatchway "$@"; else compdef _hatchway hatchway; fi
`
}

function fishLinesFor({ path, command }: Located): string[] {
  const here = path.map(word => `__fish_seen_subcommand_from ${word}`)
  const names = command.commands.map(({ name }) => name).join(' ')
  const noneYet = path.length === 0 ? '__fish_use_subcommand' : `not __fish_seen_subcommand_from ${names}`
  const line = (conditions: readonly string[], rest: string) =>
    `complete -c hatchway${conditions.length === 0 ? '' : ` -n ${quoted(conditions.join('; and '))}`} ${rest}`
  return [
    ...command.commands.map(({ name, description }) =>
      line([...here, noneYet], `-f -a ${quoted(name)} -d ${quoted(description)}`),
    ),
    ...command.values.map(value => line(here, `-f -a ${quoted(value)}`)),
    ...command.options.map(({ long, short, description, takesValue, values, isPath }) => {
      const value = values.length > 0 ? `-x -a ${quoted(values.join(' '))}` : isPath ? '-r -F' : '-x'
      const parts = [
        ...(short === '' ? [] : [`-s ${short.slice(1)}`]),
        ...(long === '' ? [] : [`-l ${long.slice(2)}`]),
        ...(takesValue ? [value] : []),
      ]
      return line(here, `${parts.join(' ')} -d ${quoted(description)}`)
    }),
  ]
}

function fish(all: readonly Located[]): string {
  return `# hatchway for fish: save this as ~/.config/fish/completions/hatchway.fish.\n${all.flatMap(fishLinesFor).join('\n')}\n`
}
