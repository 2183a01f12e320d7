import { randomUUID } from 'node:crypto'
import { existsSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, extname, join, resolve } from 'node:path'
import { createInterface, type Interface } from 'node:readline/promises'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { type Answers, configText } from '../config-text.ts'
import { exitCodes, Failure } from '../failure.ts'
import { type CommonOptions, common } from '../options.ts'
import { printJson, printLine } from '../output.ts'
import { withClient } from '../session.ts'
import { visible } from '../text.ts'

interface InitOptions extends CommonOptions {
  file?: string
  name?: string
  driver?: string
  keyVariable?: string
  sandbox?: string
  timezone?: string
  port?: number
  group?: string
  jid?: string
  groupName?: string
  yes?: boolean
  force?: boolean
}

/** The host's names; written here too, so that `--help` need not load it. A test compares them. */
export const driverChoices = ['concierge', 'claude', 'command']
export const sandboxChoices = ['auto', 'docker', 'podman', 'bubblewrap', 'process']

const usualFile = 'hatchway.config.ts'

export function addInit(program: Command): void {
  common(
    program
      .command('init')
      .description('ask a few questions, write a configuration and register a first group'),
    'init\ninit --yes --name Andy --driver claude --timezone Europe/Lisbon',
  )
    .option('--file <file>', `the configuration file to write; left out: --config, then ${usualFile}`)
    .option('--name <text>', 'the name the assistant goes by')
    .addOption(new Option('--driver <name>', 'who answers').choices(driverChoices))
    .option('--key-variable <name>', 'the variable of the environment that holds the model’s key')
    .addOption(new Option('--sandbox <name>', 'what agents run in').choices(sandboxChoices))
    .option('--timezone <zone>', 'the zone of times that name none')
    .option('--port <number>', 'the port of the console; 0 for any', port)
    .option('--group <folder>', 'the folder of a first group; "none" for none')
    .option('--jid <chat>', 'its chat; left out: one of the console’s own')
    .option('--group-name <text>', 'what people call it')
    .option('--yes', 'ask nothing: take the options, and what is usual for the rest')
    .option('--force', 'replace a configuration that is there')
    .action(init)
}

function port(text: string): number {
  if (!/^\d{1,5}$/.test(text) || Number(text) > 65_535)
    throw new InvalidArgumentError('It must be from 0 to 65535.')
  return Number(text)
}

async function init(options: InitOptions): Promise<void> {
  const named = options.file ?? options.config ?? usualFile
  const file = resolve(named)
  if (existsSync(file) && !options.force)
    throw new Failure(
      `${file} is there already. Look at it with: npx hatchway config. To begin anew, say --force.`,
    )
  if (!options.yes && !process.stdin.isTTY)
    throw new Failure('There is nobody to ask: say --yes, and what you want with options.', exitCodes.usage)
  const preset = usual(options)
  await refuseWrong(preset)
  const answers = options.yes ? preset : await asked(options)
  await refuseWrong(answers)
  const config = await writeLoaded(file, configText(answers, await canImport(file)))
  const { group } = answers
  if (group) {
    await withClient(
      { ...options, config: file },
      (client, api) =>
        client
          .get('/groups', api.groupsAnswer)
          .then(groups =>
            groups.some(({ folder }) => folder === group.folder)
              ? undefined
              : client.post('/groups', { ...group, main: !groups.some(({ main }) => main) }, api.groupAnswer),
          ),
      { mayCreate: true },
    )
  }
  if (options.json) return printJson({ file, data: config.data, group: group?.folder ?? null })
  await printLine(`${visible(file)} is written.`)
  if (group) await printLine(`Group ${group.folder} is registered for ${visible(group.jid)}.`)
  // It is found by itself here, under its usual name.
  const option = file === resolve(usualFile) ? '' : ` --config ${visible(named)}`
  await printLine('Look whether everything is there, and start it:')
  await printLine(`  npx hatchway doctor${option}`)
  if (answers.driver === 'claude') await printLine(`  export ${answers.keyVariable}=…`)
  await printLine(`  npx hatchway up${option}`)
}

/** What was said with options is held to what answers are. Nothing is written before everything will do. */
async function refuseWrong({ name, keyVariable, timezone, group }: Answers): Promise<void> {
  const wrong = [
    { option: '--name', problem: isName(name) },
    { option: '--key-variable', problem: isVariable(keyVariable) },
    { option: '--timezone', problem: isZone(timezone) },
    { option: '--group', problem: group && isFolder(group.folder) },
  ].find(({ problem }) => problem !== undefined)
  if (wrong) throw new Failure(`${wrong.option}: ${wrong.problem}`, exitCodes.usage)
  if (!group) return
  const { newGroupRequest } = await import('@hatchway/host/api')
  const [issue] = newGroupRequest.safeParse(group).error?.issues ?? []
  if (issue)
    throw new Failure(`The group’s ${issue.path.join('.')} will not do: ${issue.message}`, exitCodes.usage)
}

/** Written beside its place and loaded from there, so that a configuration that works is only replaced by one. */
async function writeLoaded(file: string, text: string) {
  const { loadConfig, ConfigError } = await import('@hatchway/host/config')
  const trial = join(dirname(file), `.hatchway-${randomUUID()}${extname(file)}`)
  writeFileSync(trial, text, { mode: 0o644 })
  try {
    const config = await loadConfig({ file: trial, env: {} })
    renameSync(trial, file)
    return config
  } catch (error) {
    rmSync(trial, { force: true })
    throw error instanceof ConfigError
      ? new Failure(`Nothing was written.\n${error.message.replaceAll(trial, file)}`)
      : error
  }
}

const zoneHere = () => new Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC'

function usual(options: InitOptions): Answers {
  return answersOf({
    name: options.name ?? 'Hatch',
    driver: options.driver ?? 'concierge',
    keyVariable: options.keyVariable ?? 'ANTHROPIC_API_KEY',
    sandbox: options.sandbox ?? 'auto',
    timezone: options.timezone ?? zoneHere(),
    port: options.port ?? 7717,
    folder: options.group ?? 'main',
    jid: options.jid,
    groupName: options.groupName,
    data: options.data,
  })
}

function answersOf({
  folder,
  jid,
  groupName,
  ...rest
}: Omit<Answers, 'group'> & {
  folder: string
  jid: string | undefined
  groupName: string | undefined
}): Answers {
  if (folder === 'none') return { ...rest, group: undefined }
  const title = folder.charAt(0).toUpperCase() + folder.slice(1)
  return { ...rest, group: { folder, jid: jid ?? `local:${folder}`, name: groupName ?? title } }
}

async function asked(options: InitOptions): Promise<Answers> {
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  const ended = new AbortController()
  lines.once('close', () => ended.abort())
  const preset = usual(options)
  try {
    const name =
      options.name ?? (await ask(lines, ended.signal, 'What is your assistant called?', preset.name))
    const driver =
      options.driver ??
      (await choose(
        lines,
        ended.signal,
        'Who answers? concierge needs no model',
        driverChoices,
        preset.driver,
      ))
    const keyVariable =
      driver === 'claude' && options.keyVariable === undefined
        ? await ask(
            lines,
            ended.signal,
            'Which variable of the environment holds its key?',
            preset.keyVariable,
            isVariable,
          )
        : preset.keyVariable
    const sandbox =
      options.sandbox ??
      (await choose(
        lines,
        ended.signal,
        'What do agents run in? auto is the safest there is',
        sandboxChoices,
        preset.sandbox,
      ))
    const timezone =
      options.timezone ?? (await ask(lines, ended.signal, 'Which time zone?', preset.timezone, isZone))
    const chosen =
      options.port ??
      Number(await ask(lines, ended.signal, 'Which port for the console?', String(preset.port), isPort))
    const folder =
      options.group ??
      (await ask(lines, ended.signal, 'The folder of a first group ("none" for none)?', 'main', isFolder))
    return answersOf({
      name,
      driver,
      keyVariable,
      sandbox,
      timezone,
      port: chosen,
      folder,
      jid: options.jid,
      groupName: options.groupName,
      data: options.data,
    })
  } catch (error) {
    if (ended.signal.aborted) throw new Failure('Nothing was written.', exitCodes.usage)
    throw error
  } finally {
    lines.close()
  }
}

const isName = (text: string) => (text.trim() === '' ? 'The assistant needs a name.' : undefined)
const isVariable = (text: string) =>
  /^[A-Za-z_][A-Za-z0-9_]*$/.test(text) ? undefined : 'A variable is named with letters, digits and _.'
const isFolder = (text: string) =>
  /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/.test(text) ? undefined : 'Letters, digits, - and _ are allowed.'
const isPort = (text: string) =>
  /^\d{1,5}$/.test(text) && Number(text) <= 65_535 ? undefined : 'It must be from 0 to 65535.'
function isZone(text: string): string | undefined {
  try {
    new Intl.DateTimeFormat('en', { timeZone: text })
    return undefined
  } catch (error) {
    if (error instanceof RangeError) return 'There is no such zone; they are named like Europe/Lisbon.'
    throw error
  }
}

/** Asked again until the answer will do. Nothing means what is usual. */
async function ask(
  lines: Interface,
  signal: AbortSignal,
  question: string,
  usually: string,
  problem: (text: string) => string | undefined = () => undefined,
): Promise<string> {
  for (;;) {
    const answer = (await lines.question(`${question} [${usually}] `, { signal })).trim() || usually
    const wrong = problem(answer)
    if (wrong === undefined) return answer
    process.stderr.write(`${wrong}\n`)
  }
}

const choose = (
  lines: Interface,
  signal: AbortSignal,
  question: string,
  choices: readonly string[],
  usually: string,
): Promise<string> =>
  ask(lines, signal, `${question} (${choices.join(', ')})`, usually, text =>
    choices.includes(text) ? undefined : `It is one of ${choices.join(', ')}.`,
  )

/** Where Hatchway itself can be imported from, an editor knows every setting. */
async function canImport(file: string): Promise<boolean> {
  const { createRequire } = await import('node:module')
  try {
    createRequire(file).resolve('@hatchway/host/config')
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error) return false
    throw error
  }
}
