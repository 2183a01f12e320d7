import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type Command, InvalidArgumentError } from 'commander'
import { exitCodes, Failure } from '../failure.ts'
import { type CommonOptions, common } from '../options.ts'
import { printJson, printLine } from '../output.ts'
import { withProgress } from '../progress.ts'
import { configOf } from '../session.ts'
import { safeJson, visible } from '../text.ts'

interface PostOptions extends CommonOptions {
  group: string
  type?: string
  payload?: string
  id?: string
  dir: string
  raw?: string
  wait?: number | true
}

const defaultWaitSeconds = 30

const seconds = (text: string): number => {
  const value = Number(text)
  if (text.trim() === '' || !Number.isFinite(value) || value < 0 || value > 86_400) {
    throw new InvalidArgumentError('It must be a number of seconds.')
  }
  return value
}

export function addPost(program: Command): void {
  common(
    program.command('post').description('drop a file into a group’s directory, as an agent would'),
    `post --group family --type send_message --payload '{"text":"hello"}' --wait\n` +
      'post --group family --raw request.json --dir tasks',
  )
    .requiredOption('--group <folder>', 'whose directory')
    .option('--type <type>', 'the command, such as send_message')
    .option('--payload <json>', 'its payload; - reads it from standard input')
    .option('--id <id>', 'its request id; one that was answered before is answered the same again')
    .option('--dir <name>', 'the subdirectory', 'tasks')
    .option('--raw <file>', 'post this file as it is, instead of --type and --payload; - is standard input')
    .option('--wait [seconds]', `wait for the answer and print it (${defaultWaitSeconds} seconds)`, seconds)
    .action(run)
}

async function run(options: PostOptions): Promise<void> {
  const [{ post }, { folderSchema }, { uuid7 }, config] = await Promise.all([
    import('@hatchway/spool'),
    import('@hatchway/protocol'),
    import('../uuid.ts'),
    configOf(options),
  ])
  if (!folderSchema.safeParse(options.group).success || !/^[a-z_]{1,32}$/.test(options.dir)) {
    throw new Failure('--group and --dir are names of directories below ipc/.', exitCodes.usage)
  }
  const { content, id } = contentOf(options, uuid7)
  if (options.wait !== undefined && id === undefined) {
    throw new Failure('The file has no id, so no answer will come. Leave --wait out.', exitCodes.usage)
  }
  const home = join(config.data, 'ipc', options.group)
  const directory = join(home, options.dir)
  const found = statSync(directory, { throwIfNoEntry: false })
  if (!found?.isDirectory()) {
    throw new Failure(
      `There is no directory ${directory}. Register the group first: npx hatchway groups add --help`,
    )
  }
  // Half-written files in the host's own place: a directory made in the agent's would be ours, and in its way.
  const staging = join(config.data, 'spool', 'staging')
  const file = post(directory, content, {
    ...(existsSync(staging) && { staging }),
    ...(process.getuid?.() === 0 && { owner: { uid: found.uid, gid: found.gid } }),
  })
  if (options.wait === undefined || id === undefined) {
    if (options.json) return printJson({ id: id ?? null, file: join(directory, file) })
    return printLine(
      `Posted ${visible(join(directory, file))}${id === undefined ? '' : ` with id ${visible(id)}`}.`,
    )
  }
  await answer(
    options,
    join(home, 'responses'),
    id,
    options.wait === true ? defaultWaitSeconds : options.wait,
  )
}

async function answer(options: PostOptions, directory: string, id: string, patience: number): Promise<void> {
  const { waitForAnswer } = await import('../answer-file.ts')
  const receipt = await withProgress('Waiting for the answer', () => waitForAnswer(directory, id, patience))
  if (!receipt) {
    throw new Failure(
      `No answer to ${id} came within ${patience} seconds. Is a daemon running on this data directory? (npx hatchway up)`,
      exitCodes.noAnswer,
    )
  }
  const refused = receipt.ok === false || receipt.error !== undefined
  if (refused) process.exitCode = exitCodes.refused
  if (options.json) return printJson(receipt)
  await printLine(
    refused ? `Refused: ${safeJson(receipt.error)}` : `Done: ${safeJson(receipt.result ?? receipt)}`,
  )
}

function contentOf(options: PostOptions, newId: () => string): { content: string | Uint8Array; id?: string } {
  if (options.raw !== undefined) {
    if (options.type !== undefined || options.payload !== undefined) {
      throw new Failure('--raw stands alone: leave --type and --payload out.', exitCodes.usage)
    }
    const content = readFileSync(options.raw === '-' ? 0 : options.raw)
    const id = idIn(content.toString('utf8'))
    return id === undefined ? { content } : { content, id }
  }
  if (options.type === undefined) throw new Failure('Say --type and --payload, or --raw.', exitCodes.usage)
  const id = options.id ?? newId()
  const text = options.payload === '-' ? readFileSync(0, 'utf8') : (options.payload ?? '{}')
  let payload: unknown
  try {
    payload = JSON.parse(text)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    throw new Failure(`--payload is not JSON: ${error.message}.`, exitCodes.usage)
  }
  const body = { version: 1, id, type: options.type, payload, sent_at: new Date().toISOString() }
  return { content: `${JSON.stringify(body)}\n`, id }
}

/** What its answer will be called; only ids that are safe in a path. */
function idIn(text: string): string | undefined {
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
  if (typeof body !== 'object' || body === null) return undefined
  const id = 'id' in body ? body.id : 'request_id' in body ? body.request_id : undefined
  return typeof id === 'string' && /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/.test(id) ? id : undefined
}
