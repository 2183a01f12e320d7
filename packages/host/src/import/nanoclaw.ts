import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { folderSchema } from '@hatchway/protocol'
import { z } from 'zod'
import type { Host } from '../api/host.ts'
import { openHost } from '../assemble/host.ts'
import { layoutOf } from '../base/layout.ts'
import { createOwners } from '../base/owners.ts'
import type { Config } from '../config.ts'
import { type NanoClawGroup, type NanoClawRows, type NanoClawTask, readNanoClaw } from '../store/nanoclaw.ts'
import { createCopier } from './files.ts'
import { outdatedInstructions } from './instructions.ts'
import { withSettings } from './settings.ts'

/**
 * Takes over what a NanoClaw installation has: its groups, their files, their tasks. Nothing there is changed, and what
 * is here already stays as it is, so that it can be done again.
 */
export interface ImportOptions {
  /** only says what would be done */
  dryRun?: boolean
  /** the zone of its cron expressions; left out: the configured one */
  timezone?: string
}

interface ImportLine {
  kind: 'group' | 'task' | 'files' | 'note'
  name: string
  /** `there`: it was taken over before */
  state: 'taken' | 'there' | 'left'
  says: string
}

export interface ImportReport {
  from: string
  dry_run: boolean
  lines: ImportLine[]
}

class ImportRefused extends Error {
  override name = 'ImportRefused'
}

const oldGroups = z.record(
  z.string(),
  z.looseObject({
    name: z.string(),
    folder: z.string(),
    trigger: z.string().nullish(),
    requiresTrigger: z.boolean().nullish(),
    isMain: z.boolean().nullish(),
    containerConfig: z.unknown().optional(),
  }),
)

export async function importNanoClaw(
  config: Config,
  from: string,
  { dryRun = false, timezone = config.timezone }: ImportOptions = {},
): Promise<ImportReport> {
  const rows = rowsOf(from)
  const groups = rows.groups ?? groupsInFile(from)
  const lines: ImportLine[] = []
  const copy = dryRun ? await copyForDryRun(config) : undefined
  const host = await openHost({ ...config, data: copy ?? config.data }, { watch: false })
  try {
    const taken = new Map<string, string>()
    for (const group of groups) {
      const line = await takeGroup(host, group, rows.channels.get(group.jid))
      lines.push(line, ...mountsOf(group))
      if (line.state !== 'left') taken.set(group.folder, group.jid)
    }
    const copier = createCopier({ dryRun })
    const owners = createOwners(config, host.store)
    const theirs = join(from, 'groups')
    const ours = layoutOf(config.data).groups
    for (const folder of [...taken.keys(), 'global']) {
      const copied = copier.copy(
        join(theirs, folder),
        join(ours, folder),
        folder !== 'global',
        owners(folder),
      )
      if (copied) lines.push({ kind: 'files', name: folder, ...copied })
    }
    for (const folder of taken.keys()) {
      const copyInto = (directory: string) =>
        copier.copy(directory, join(ours, folder), true, owners(folder), ['.home', '.claude'])
      lines.push(...settingsOf(from, folder, copyInto))
    }
    for (const task of rows.tasks) lines.push(await takeTask(host, task, taken, timezone))
    for (const folder of [...taken.keys(), 'global'])
      for (const { file, says } of outdatedInstructions(join(theirs, folder)))
        lines.push({ kind: 'note', name: `groups/${folder}/${file}`, state: 'left', says })
    lines.push(...remarks(from, rows, taken))
  } finally {
    await host.stop()
    if (copy !== undefined) rmSync(copy, { recursive: true })
  }
  return { from, dry_run: dryRun, lines }
}

/**
 * A dry run does everything on a copy of the store, so that it refuses what the import refuses. The data directory is
 * opened as the import opens it, which a daemon that runs refuses, and is not made where there is none.
 */
async function copyForDryRun(config: Config): Promise<string> {
  const { database, state } = layoutOf(config.data)
  const copy = mkdtempSync(join(tmpdir(), 'hatchway-dry-run-'))
  if (!existsSync(state)) return copy
  try {
    const host = await openHost(config, { watch: false })
    await host.stop()
    mkdirSync(layoutOf(copy).state, { mode: 0o700 })
    for (const part of ['', '-wal'])
      if (existsSync(database + part)) copyFileSync(database + part, layoutOf(copy).database + part)
    return copy
  } catch (error) {
    rmSync(copy, { recursive: true })
    throw error
  }
}

/** Skills and settings of its Claude, and what its own copy of the runner is here. */
function settingsOf(
  from: string,
  folder: string,
  copy: (directory: string) => ReturnType<ReturnType<typeof createCopier>['copy']>,
): ImportLine[] {
  const lines: ImportLine[] = []
  withSettings(from, folder, ({ directory, left }) => {
    const copied = copy(directory)
    const leaves = left.length === 0 ? '' : ` Left: ${left.join(', ')}.`
    if (copied)
      lines.push({
        kind: 'files',
        name: `${folder}/.claude`,
        state: copied.state,
        says: copied.says + leaves,
      })
  })
  if (hasOwnRunner(from, folder)) {
    lines.push({
      kind: 'note',
      name: folder,
      state: 'left',
      says: `Its agent has changed its runner (data/sessions/${folder}/agent-runner-src), which is not mounted at /app/src here. Build an image with it, and name that in groups.${folder}.image.`,
    })
  }
  return lines
}

function hasOwnRunner(from: string, folder: string): boolean {
  const own = join(from, 'data', 'sessions', folder, 'agent-runner-src')
  const stock = join(from, 'container', 'agent-runner', 'src')
  if (!statSync(own, { throwIfNoEntry: false })?.isDirectory()) return false
  return readdirSync(own, { recursive: true, encoding: 'utf8' }).some(name => {
    if (!statSync(join(own, name)).isFile()) return false
    const same = statSync(join(stock, name), { throwIfNoEntry: false })
    return !same?.isFile() || !readFileSync(join(own, name)).equals(readFileSync(join(stock, name)))
  })
}

function rowsOf(from: string): NanoClawRows {
  const path = join(from, 'store', 'messages.db')
  if (!existsSync(path)) {
    throw new ImportRefused(
      existsSync(join(from, 'data', 'v2.db'))
        ? `${from} is NanoClaw 2, which keeps its groups and sessions in another form. Only version 1 can be taken over.`
        : `${from} has no store/messages.db. Name the directory that NanoClaw was cloned into.`,
    )
  }
  const folder = mkdtempSync(join(tmpdir(), 'hatchway-import-'))
  try {
    for (const part of ['', '-wal'])
      if (existsSync(path + part)) copyFileSync(path + part, join(folder, `messages.db${part}`))
    return readNanoClaw(join(folder, 'messages.db'))
  } catch (error) {
    if (error instanceof z.ZodError || (error instanceof Error && 'errcode' in error))
      throw new ImportRefused(
        `${path} cannot be read as NanoClaw’s: ${error instanceof z.ZodError ? z.prettifyError(error) : error.message}. Stop NanoClaw and try again.`,
        { cause: error },
      )
    throw error
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Before it had a table for them. */
function groupsInFile(from: string): NanoClawGroup[] {
  const path = join(from, 'data', 'registered_groups.json')
  if (!existsSync(path)) return []
  let parsed: unknown
  try {
    parsed = JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
  }
  const groups = oldGroups.safeParse(parsed)
  if (!groups.success) throw new ImportRefused(`${path} cannot be read as NanoClaw’s list of groups.`)
  return Object.entries(groups.data).map(([jid, group]) => ({
    jid,
    name: group.name,
    folder: group.folder,
    trigger_pattern: group.trigger ?? null,
    container_config: group.containerConfig === undefined ? null : JSON.stringify(group.containerConfig),
    requires_trigger: group.requiresTrigger === false ? 0 : 1,
    is_main: group.isMain ? 1 : null,
  }))
}

const isMain = ({ is_main, folder }: NanoClawGroup) => (is_main === null ? folder === 'main' : is_main === 1)

async function takeGroup(host: Host, group: NanoClawGroup, channel: string | undefined): Promise<ImportLine> {
  const { jid, folder, name } = group
  const line = (state: ImportLine['state'], says: string): ImportLine => ({
    kind: 'group',
    name: folder,
    state,
    says,
  })
  const known = host.store.groups().find(other => other.jid === jid)
  if (known) {
    return known.folder === folder
      ? line('there', `It is registered for ${jid} already.`)
      : line('left', `The chat ${jid} has another group here, ${known.folder}.`)
  }
  if (host.store.group(folder))
    return line('left', `Another chat’s group has this folder here. Rename one of them.`)
  if (!folderSchema.safeParse(folder).success)
    return line('left', 'Its folder is not a name that is allowed here.')
  const main = isMain(group)
  const says = `${main ? 'The main group, f' : 'F'}or ${jid}.`
  const outcome = await host.addGroup({
    folder,
    jid,
    name,
    main,
    dialect: 'nanoclaw',
    requires_trigger: !main && group.requires_trigger !== 0,
    ...(group.trigger_pattern ? { trigger: group.trigger_pattern } : {}),
    ...(channel === undefined ? {} : { channel }),
  })
  return outcome.ok ? line('taken', says) : line('left', outcome.error.message)
}

const containerConfig = z.looseObject({
  additionalMounts: z
    .array(
      z.looseObject({
        hostPath: z.string(),
        containerPath: z.string().nullish(),
        readonly: z.boolean().nullish(),
      }),
    )
    .nullish(),
  timeout: z.number().nullish(),
})

/** What a group may see is the operator's to give anew. */
function mountsOf({ folder, container_config }: NanoClawGroup): ImportLine[] {
  if (container_config === null) return []
  const left = (says: string): ImportLine => ({ kind: 'note', name: folder, state: 'left', says })
  let parsed: unknown
  try {
    parsed = JSON.parse(container_config)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
  }
  const config = containerConfig.safeParse(parsed)
  if (!config.success) return [left('The settings of its container cannot be read.')]
  const { additionalMounts, timeout } = config.data
  const lines: ImportLine[] = []
  if (additionalMounts?.length) {
    const mounts = additionalMounts.map(({ hostPath, containerPath, readonly }) => {
      const to = containerPath ?? hostPath.split('/').at(-1) ?? 'mount'
      return `{ from: '${hostPath}', to: '${to}'${readonly === false ? ', writable: true' : ''} }`
    })
    lines.push(
      left(
        `Its mounts are for you to give: in the configuration, groups: { '${folder}': { mounts: [${mounts.join(', ')}] } }, and the directories in mountsAllowed.`,
      ),
    )
  }
  if (timeout)
    lines.push(left(`Its container’s time-out of ${timeout} ms: here agents.runMs counts, for all groups.`))
  return lines
}

async function takeTask(
  host: Host,
  task: NanoClawTask,
  taken: ReadonlyMap<string, string>,
  timezone: string,
): Promise<ImportLine> {
  const line = (state: ImportLine['state'], says: string): ImportLine => ({
    kind: 'task',
    name: task.id,
    state,
    says,
  })
  const status = task.status ?? 'active'
  if (host.store.tasks({}).some(({ id }) => id === task.id))
    return line('there', 'There is a task with this id.')
  if (status !== 'active' && status !== 'paused') return line('left', `It is ${status}.`)
  if (!taken.has(task.group_folder)) return line('left', `Its group ${task.group_folder} was not taken over.`)
  const kind = z.enum(['cron', 'interval', 'once']).safeParse(task.schedule_type)
  if (!kind.success)
    return line('left', `Nothing here runs by the schedule ${JSON.stringify(task.schedule_type)}.`)
  if (kind.data === 'once' && Date.parse(task.next_run ?? task.schedule_value) <= Date.now())
    return line('left', `Its time has passed: ${task.next_run ?? task.schedule_value}.`)
  const says = `For ${task.group_folder}: ${kind.data} ${task.schedule_value}${status === 'paused' ? ', paused' : ''}.`
  const outcome = await host.perform({
    type: 'schedule_task',
    payload: {
      task_id: task.id,
      group: task.group_folder,
      prompt: task.prompt,
      schedule_type: kind.data,
      schedule_value: task.schedule_value,
      timezone,
      context_mode: task.context_mode === 'group' ? 'group' : 'isolated',
      ...(task.script === null ? {} : { script: task.script }),
    },
  })
  if (!outcome.ok) return line('left', outcome.error.message)
  await keepHistory(host, task)
  if (status === 'paused') await host.perform({ type: 'pause_task', payload: { task_id: task.id } })
  return line('taken', says)
}

const instant = (text: string | null): string | null => {
  const ms = text === null ? Number.NaN : Date.parse(text)
  return Number.isNaN(ms) ? null : new Date(ms).toISOString()
}

/** An interval goes on from when it would have run next, and what it did before stays known. */
async function keepHistory({ store }: Host, task: NanoClawTask): Promise<void> {
  const next = instant(task.next_run)
  store.transaction(transaction => {
    const made = transaction.task(task.id)
    if (!made) return
    const goesOn = made.schedule_type === 'interval' && next !== null && Date.parse(next) > Date.now()
    transaction.updateTask({
      ...made,
      next_run: goesOn ? next : made.next_run,
      last_run: instant(task.last_run),
      last_result: task.last_result,
      created_at: instant(task.created_at) ?? made.created_at,
    })
  })
}

function remarks(from: string, rows: NanoClawRows, taken: ReadonlyMap<string, string>): ImportLine[] {
  const left = (name: string, says: string): ImportLine => ({ kind: 'note', name, state: 'left', says })
  const waiting = [...taken.keys()].flatMap(folder =>
    ['messages', 'tasks'].flatMap(directory => jsonIn(join(from, 'data', 'ipc', folder, directory))),
  )
  return [
    ...(waiting.length > 0
      ? [
          left(
            'data/ipc',
            `${waiting.length} files of agents wait there. Let NanoClaw handle them before you stop it.`,
          ),
        ]
      : []),
    ...(rows.sessions > 0
      ? [
          left(
            'sessions',
            `${rows.sessions} conversations of Claude stay there: agents begin anew here, with the same files.`,
          ),
        ]
      : []),
    ...(rows.messages > 0 ? [left('messages', `${rows.messages} messages of chats stay there.`)] : []),
    ...(existsSync(join(from, '.env'))
      ? [left('.env', 'Keys are not taken over. Set them in the environment of the daemon.')]
      : []),
  ]
}

const jsonIn = (directory: string): string[] =>
  statSync(directory, { throwIfNoEntry: false })?.isDirectory()
    ? readdirSync(directory).filter(name => name.endsWith('.json'))
    : []
