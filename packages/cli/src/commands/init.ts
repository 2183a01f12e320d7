import { existsSync, rmSync } from 'node:fs'
import { resolve } from 'node:path'
import { configFiles, driverNames, providerNames, sandboxNames } from '@hatchway/host/names'
import { InvalidArgumentError } from 'commander'
import { command } from '../command.ts'
import { type Answers, configText } from '../config-text.ts'
import { Failure, usageError } from '../failure.ts'
import { choice, flag, parsed, text, type ValuesOf } from '../inputs.ts'
import { printJson, printLine } from '../output.ts'
import { type Questions, withQuestions } from '../questions.ts'
import { withClient } from '../session.ts'
import { visible } from '../text.ts'
import { canImport, usualConfigFile, writeConfig } from '../write-config.ts'

const input = {
  file: text(
    'file',
    'the configuration file to write (default: --config, then hatchway.config.ts, .mts or .mjs, whichever works here)',
  ),
  name: text('text', 'the assistant’s name'),
  model: text('provider/name', 'the model that agents ask, such as ollama/qwen3 (default: none)'),
  driver: choice('name', 'the agent that answers', driverNames),
  keyVariable: text('name', 'the environment variable with the model’s key'),
  sandbox: choice('name', 'what agents run in', sandboxNames),
  timezone: text('zone', 'the time zone'),
  port: parsed('number', 'the console’s port; 0 for any', given => {
    const wrong = portProblem(given)
    if (wrong !== undefined) throw new InvalidArgumentError(wrong)
    return Number(given)
  }),
  group: text('folder', 'the folder of a first group; "none" for no group'),
  jid: text('chat', 'its chat (default: one of the console’s own)'),
  groupName: text('text', 'its name for people'),
  yes: flag('ask nothing; use defaults for what the options leave open'),
  force: flag('replace an existing configuration'),
}
type InitOptions = ValuesOf<typeof input> & { data?: string | undefined }

export default command('init', 'answer a few questions, write a configuration and register a first group', {
  example: '--yes --name Andy --model ollama/qwen3 --timezone Europe/Lisbon',
  input,
  async run(given) {
    const usualFile = usualConfigFile()
    const asked = given.file ?? given.config
    const named = asked ?? usualFile
    const file = resolve(named)
    const existing = [file, ...(asked === undefined ? configFiles : [])]
      .map(one => resolve(one))
      .filter(existsSync)
    if (existing[0] !== undefined && !given.force)
      throw new Failure(
        `${existing[0]} already exists. See it with npx hatchway config, or replace it with --force.`,
      )
    if (!given.yes && !process.stdin.isTTY)
      throw usageError('Questions need a terminal. Use --yes, and options for your answers.')
    // Options are checked before anything is asked.
    const preset = await checked(await answersOf(given))
    const answers = given.yes
      ? preset
      : await withQuestions(async questions => checked(await answersOf(given, questions)), {
          whenEnded: 'Nothing was written.',
        })
    const { config } = await writeConfig(file, configText(answers, canImport(file)))
    // One of another name would be found first.
    for (const replaced of existing) if (replaced !== file) rmSync(replaced)
    await register(answers, { ...given, config: file })
    const { group } = answers
    if (given.json) return printJson({ file, data: config.data, group: group?.folder ?? null })
    await printLine(`Configuration written to ${visible(file)}.`)
    if (group) await printLine(`Group ${group.folder} is registered for ${visible(group.jid)}.`)
    // Under its usual name it is found without an option.
    const option = file === resolve(usualFile) ? '' : ` --config ${visible(named)}`
    await printLine('Check the installation, and start it:')
    await printLine(`  npx hatchway doctor${option}`)
    if (answers.driver === 'claude') await printLine(`  npx hatchway agents add claude${option}`)
    const { modelOf, modelsInUse } = await import('@hatchway/host')
    const { keyVariable, needsKey } = modelOf(config, process.env)
    if (modelsInUse(config).length > 0 && needsKey) await printLine(`  export ${keyVariable}=…`)
    if (answers.model !== '') await printLine(`  npx hatchway models${option}`)
    await printLine(`  npx hatchway up${option}`)
  },
})

/** Options first; what they leave open is asked, or without `questions` gets its default. */
async function answersOf(options: InitOptions, questions?: Questions): Promise<Answers> {
  const answer = async (
    given: string | undefined,
    usual: string,
    ask: (questions: Questions, usual: string) => Promise<string>,
  ) => given ?? (questions ? ask(questions, usual) : usual)

  const name = await answer(options.name, 'Hatch', (q, usual) => q.ask('Name of your assistant?', usual))
  const model = await answer(options.model, '', async q => (options.driver ? '' : askedModel(q)))
  const driver = await answer(options.driver, model === '' ? 'concierge' : 'assistant', (q, usual) =>
    q.choose('Which agent answers? concierge needs no model', driverNames, usual),
  )
  const keyVariable = await answer(options.keyVariable, 'ANTHROPIC_API_KEY', async (q, usual) =>
    driver === 'claude' && model === ''
      ? q.ask('Which environment variable has its key?', usual, variableProblem)
      : usual,
  )
  const sandbox = await answer(options.sandbox, 'auto', (q, usual) =>
    q.choose('Which sandbox? auto uses the safest available', sandboxNames, usual),
  )
  const localZone = new Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC'
  const timezone = await answer(options.timezone, localZone, (q, usual) =>
    q.ask('Which time zone?', usual, zoneProblem),
  )
  const port = await answer(options.port?.toString(), '7717', (q, usual) =>
    q.ask('Which port for the console?', usual, portProblem),
  )
  const folder = await answer(options.group, 'main', (q, usual) =>
    q.ask('Folder of a first group ("none" for no group)?', usual, folderProblem),
  )
  const title = folder.charAt(0).toUpperCase() + folder.slice(1)
  const group = { folder, jid: options.jid ?? `local:${folder}`, name: options.groupName ?? title }
  return {
    name,
    model,
    driver,
    keyVariable,
    sandbox,
    timezone,
    port: Number(port),
    data: options.data,
    group: folder === 'none' ? undefined : group,
  }
}

const none = 'none'
/** Part of the questions, so it goes where they go. */
const say = (line: string) => void process.stderr.write(`${visible(line)}\n`)

/** Offers what is found: a model server on this machine, a provider for which there is a key. */
async function askedModel(questions: Questions): Promise<string> {
  say('Looking for models…')
  const { findModels } = await import('@hatchway/host')
  const found = await findModels(process.env)
  for (const { title, keyVariable, url, problem, models } of found)
    say(
      `${title} (${keyVariable === undefined ? url : `key in ${keyVariable}`}): ${problem ?? counted(models.length)}`,
    )
  const offered = found.flatMap(({ provider, models }) =>
    models.slice(0, 5).map(name => `${provider}/${name}`),
  )
  for (const [i, model] of offered.entries()) say(`  ${i + 1}  ${model}`)
  const given = await questions.ask(
    offered.length === 0
      ? 'Which model? None is found; name one, such as ollama/qwen3, or none'
      : 'Which model? A number, another provider/name, or none',
    offered[0] === undefined ? none : '1',
    answer =>
      answer === none || offered[Number(answer) - 1] !== undefined ? undefined : modelProblem(answer),
  )
  return given === none ? '' : (offered[Number(given) - 1] ?? given)
}

const counted = (models: number) => (models === 1 ? '1 model' : `${models} models`)
function modelProblem(given: string): string | undefined {
  const at = given.indexOf('/')
  const isKnown = providerNames.some(name => name === given.slice(0, at))
  if (isKnown && /^[\w.:@/+-]{1,128}$/.test(given.slice(at + 1))) return undefined
  return `Write provider/name, with one of these providers: ${providerNames.join(', ')}.`
}
const variableProblem = (given: string) =>
  /^[A-Za-z_][A-Za-z0-9_]*$/.test(given) ? undefined : 'Use letters, digits and _.'
const folderProblem = (given: string) =>
  /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/.test(given) ? undefined : 'Use letters, digits, - and _.'
function portProblem(given: string): string | undefined {
  return /^\d{1,5}$/.test(given) && Number(given) <= 65_535 ? undefined : 'It must be from 0 to 65535.'
}
function zoneProblem(given: string): string | undefined {
  try {
    new Intl.DateTimeFormat('en', { timeZone: given })
    return undefined
  } catch (error) {
    if (error instanceof RangeError) return 'Unknown time zone. Use a name such as Europe/Lisbon.'
    throw error
  }
}

/** Nothing is written before every answer is valid. */
async function checked(answers: Answers): Promise<Answers> {
  const { name, model, keyVariable, timezone, group } = answers
  const wrong = [
    { option: '--name', problem: name.trim() === '' ? 'The assistant needs a name.' : undefined },
    { option: '--model', problem: model === '' ? undefined : modelProblem(model) },
    { option: '--key-variable', problem: variableProblem(keyVariable) },
    { option: '--timezone', problem: zoneProblem(timezone) },
    { option: '--group', problem: group && folderProblem(group.folder) },
  ].find(({ problem }) => problem !== undefined)
  if (wrong) throw usageError(`${wrong.option}: ${wrong.problem}`)
  if (!group) return answers
  const { newGroupRequest } = await import('@hatchway/host/api')
  const [issue] = newGroupRequest.safeParse(group).error?.issues ?? []
  if (issue) throw usageError(`The group’s ${issue.path.join('.')} is not valid: ${issue.message}`)
  return answers
}

/** Without a group the data directory is made all the same: only one that is not there yet gets a group from `up`. */
async function register({ group }: Answers, options: { data?: string | undefined; config: string }) {
  await withClient(
    options,
    async (client, api) => {
      if (!group) return
      const groups = await client.get('/groups', api.groupsAnswer)
      if (groups.some(({ folder }) => folder === group.folder)) return
      await client.post('/groups', { ...group, main: !groups.some(({ main }) => main) }, api.groupAnswer)
    },
    { creates: true },
  )
}
