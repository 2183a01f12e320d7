import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Config } from '@hatchway/host'
import { driverNames } from '@hatchway/host/names'
import { call, command, family, tableOf } from '../command.ts'
import { settingsText } from '../config-text.ts'
import { Failure, usageError } from '../failure.ts'
import { when } from '../format.ts'
import { type CommonOptions, flag, required, requiredText, text } from '../inputs.ts'
import { printJson, printLine } from '../output.ts'
import { withProgress } from '../progress.ts'
import { url } from '../session.ts'
import { visible } from '../text.ts'
import { canImport, usualConfigFile, writeConfig } from '../write-config.ts'

const create = call('create', 'create a group with a scheduled task; the same name again changes it', {
  example: '"Morning news" --cron "0 7 * * *" --prompt "What is new in the inbox?"',
  input: {
    name: required('its name; the folder is named after it'),
    cron: requiredText('expression', 'when it runs'),
    prompt: requiredText('text', 'the prompt for each run'),
    instructions: text('file', 'a file with the agent’s standing instructions'),
    chat: text('jid', 'the chat it reports to (default: one of its own)'),
    isolated: flag('start each run without the conversation so far'),
  },
  call: async (client, api, { name, cron, prompt, instructions, chat, isolated }) =>
    client.post(
      '/periodic-agents',
      {
        name,
        schedule: cron,
        prompt,
        instructions: instructions === undefined ? undefined : await readFile(instructions, 'utf8'),
        jid: chat,
        ...(isolated && { context_mode: 'isolated' }),
      },
      api.periodicAnswer,
    ),
  print: (agent, { name }) =>
    `Agent ${visible(name)} ${agent.status}: folder ${visible(agent.folder)}, chat ${visible(agent.jid)}, task ${agent.task_id}, next run ${when(agent.next_run)}.`,
})

const reset = call('reset', 'start a new session for a group’s agent; the chat history stays', {
  example: 'family --message "Begin with the shopping list."',
  input: {
    folder: required('the group’s folder'),
    message: text('text', 'the first message of the new session (default: it waits for a message)'),
  },
  call: (client, api, { folder, message }) =>
    client.post(url`/groups/${folder}/reset`, { message }, api.resultAnswer),
  print: (_, { folder }) => `The agent of ${visible(folder)} starts a new session.`,
})

const finish = call('finish', 'mark a group’s scheduled run as finished', {
  example: 'family',
  input: { folder: required('the group’s folder') },
  call: (client, api, { folder }) => client.post(url`/groups/${folder}/finish`, undefined, api.resultAnswer),
  print: (_, { folder }) => `The scheduled run of ${visible(folder)} is done.`,
})

type DriverName = (typeof driverNames)[number]

/** A driver that is installed apart from Hatchway. */
async function named(given: string, { drivers }: typeof import('@hatchway/host')): Promise<DriverName> {
  const name = driverNames.find(one => one === given)
  const installable = driverNames.filter(one => drivers[one].package)
  if (name === undefined)
    throw usageError(`No driver has the name ${visible(given)}. There are: ${driverNames.join(', ')}.`)
  if (!drivers[name].package)
    throw new Failure(`${name} comes with Hatchway. Installed apart are: ${installable.join(', ')}.`)
  return name
}

async function opened({ data, config: file }: CommonOptions) {
  const [host, { explainConfig }] = await Promise.all([
    import('@hatchway/host'),
    import('@hatchway/host/config'),
  ])
  const { config, file: read } = await explainConfig({ data, file })
  return { host, config, file: read, layout: host.layoutOf(config.data) }
}

const add = command('add', 'install and use a driver that is not part of Hatchway', {
  example: 'claude',
  input: {
    driver: required('its name: claude'),
    from: text('folder', 'install what this folder’s package.json and package-lock.json say instead'),
  },
  async run({ driver, from, ...options }) {
    const { host, config, file, layout } = await opened(options)
    const name = await named(driver, host)
    const version = host.testedVersion(name)
    const title = `Installing ${name}${version === undefined ? '' : ` ${version}`}`
    const terms = host.drivers[name].package?.terms
    if (terms !== undefined && !options.json) await printLine(terms)
    const found = await withProgress(title, say =>
      host.installDriver(name, {
        layout,
        from: from && resolve(from),
        progress: bytes => say(`${title}: ${Math.round(bytes / 1_000_000)} MB`),
      }),
    )
    const used = config.agents.driver === name ? file : await useDriver(name, file)
    const isUsed = used !== undefined || config.agents.driver === name
    if (options.json)
      return printJson({ driver: name, version: found.version, modules: found.modules, configured: isUsed })
    await printLine(`${name} ${found.version} is installed in ${visible(found.modules)}, and starts.`)
    if (isUsed)
      await printLine(`agents.driver is ${name}${used === undefined ? '' : ` in ${visible(used)}`}.`)
    else {
      await printLine(`To use it, write into ${visible(file ?? usualConfigFile())}:`)
      await printLine(`  agents: { driver: '${name}' },`)
    }
    const { keyVariable } = host.modelOf(config, process.env)
    const hasKey = (process.env[keyVariable] ?? '').trim() !== ''
    await printLine(
      hasKey ? 'Then restart Hatchway.' : `Then set ${keyVariable} where the host runs, and restart it.`,
    )
  },
})

/**
 * Changes the one setting in the configuration file, or writes a file where there is none. Resolves with the file, or
 * with undefined where none of the places for it makes a configuration that differs in this setting only: such a file is
 * its author's to change.
 */
async function useDriver(name: DriverName, file: string | undefined): Promise<string | undefined> {
  if (file === undefined) {
    const made = resolve(usualConfigFile())
    await writeConfig(made, settingsText([`  agents: { driver: '${name}' },`], canImport(made)))
    return made
  }
  const asJson = ({ agents, ...others }: Config) => JSON.stringify([{ ...agents, driver: name }, others])
  // What does not load here needs values of the environment that are not here, or has the driver at a wrong place.
  const unlessFailed = async <T>(work: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await work()
    } catch (error) {
      if (error instanceof Failure) return undefined
      throw error
    }
  }
  const text = readFileSync(file, 'utf8')
  const before = await unlessFailed(() => writeConfig(file, text))
  if (!before) return undefined
  for (const candidate of withDriver(text, name)) {
    const after = await unlessFailed(() =>
      writeConfig(
        file,
        candidate,
        config => config.agents.driver === name && asJson(config) === asJson(before.config),
      ),
    )
    if (after?.isWritten) return file
  }
  return undefined
}

/** The text with the driver at each place where it may stand: where one stands, in `agents`, and in a new `agents`. */
function* withDriver(text: string, name: DriverName): Iterable<string> {
  const setting = `driver: '${name}'`
  for (const [place, replacement] of [
    [/\bdriver:\s*(['"])\w+\1/g, setting],
    [/\bagents:\s*\{(?=\s*\})/g, `agents: { ${setting} `],
    [/\bagents:\s*\{/g, `agents: { ${setting},`],
    [/\b(?:defineConfig\(|export default\s*)\{/g, `$&\n  agents: { ${setting} },`],
  ] as const)
    for (const { index, 0: found } of text.matchAll(place))
      yield text.slice(0, index) + replacement.replace('$&', found) + text.slice(index + found.length)
}

const list = command('list', 'list the drivers, and which are installed', {
  example: '--json',
  async run(options) {
    const { host, config, layout } = await opened(options)
    const rows = driverNames.map(driver => {
      const isBuiltIn = host.drivers[driver].package === undefined
      const version = host.findDriver(layout, driver)?.version ?? null
      return {
        driver,
        installed: isBuiltIn || version !== null,
        version,
        tested: host.testedVersion(driver) ?? null,
        in_use: [config.agents, ...Object.values(config.groups)].some(one => one.driver === driver),
      }
    })
    if (options.json) return printJson(rows)
    const state = ({ driver, installed, version, tested }: (typeof rows)[number]) =>
      version === null
        ? installed
          ? 'comes with Hatchway'
          : `not installed: npx hatchway agents add ${driver}`
        : version === tested || tested === null
          ? `installed, ${version}`
          : `installed, ${version}; tested with ${tested}: npx hatchway agents add ${driver}`
    const table = await tableOf(
      [
        { title: 'driver', value: row => row.driver },
        { title: 'in use', value: row => (row.in_use ? 'yes' : 'no') },
        { title: 'state', value: state },
      ],
      rows,
    )
    await printLine(table)
  },
})

const remove = command('remove', 'remove a driver that was installed with add', {
  example: 'claude',
  input: { driver: required('its name: claude') },
  async run({ driver, ...options }) {
    const { host, config, layout } = await opened(options)
    const name = await named(driver, host)
    if (!host.removeDriver(name, layout)) throw new Failure(`${name} is not installed in ${config.data}.`)
    if (options.json) return printJson({ driver: name })
    await printLine(`${name} is removed.`)
    if (host.missingDriver(config, layout) === name)
      await printLine('The configuration still uses it: change agents.driver, or groups that name it.')
  },
})

export default family('agents', 'manage drivers, sessions and periodic agents', [
  create,
  reset,
  finish,
  list,
  add,
  remove,
])
