import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { uuid7 } from '@hatchway/protocol/uuid'
import { InvalidArgumentError, Option } from 'commander'
import { command } from '../command.ts'
import { exitCodes, Failure, usageError } from '../failure.ts'
import { type CommonOptions, type Input, requiredText, text, type ValuesOf, withDefault } from '../inputs.ts'
import { printJson, printLine } from '../output.ts'
import { withProgress } from '../progress.ts'
import { loadSettings } from '../session.ts'
import { safeJson, visible } from '../text.ts'

const usualWaitSeconds = 30

const seconds = (given: string): number => {
  const value = Number(given)
  if (given.trim() === '' || !Number.isFinite(value) || value < 0 || value > 86_400)
    throw new InvalidArgumentError('It must be a number of seconds.')
  return value
}

const wait: Input<number | undefined> = {
  make: () => [
    new Option('--wait [seconds]', `wait for the answer and print it (default: ${usualWaitSeconds} seconds)`)
      .argParser(seconds)
      .preset(String(usualWaitSeconds)),
  ],
}

const input = {
  group: requiredText('folder', 'the group whose directory is used'),
  type: text('type', 'the command, such as send_message'),
  payload: text('json', 'its payload; - reads standard input'),
  id: text('id', 'its request id; a repeated id gets the first answer again'),
  dir: withDefault(text('name', 'the subdirectory'), 'tasks'),
  raw: text('file', 'post this file unchanged, instead of --type and --payload; - reads standard input'),
  wait,
}
type PostOptions = ValuesOf<typeof input> & CommonOptions

export default command('post', 'post a file into a group’s directory, as an agent does', {
  example: `--group family --type send_message --payload '{"text":"hello"}' --wait\n--group family --raw request.json --dir tasks`,
  input,
  async run(given) {
    const [{ post }, { folderSchema }, config] = await Promise.all([
      import('@hatchway/spool'),
      import('@hatchway/protocol'),
      loadSettings(given),
    ])
    const { group, dir, json } = given
    if (!folderSchema.safeParse(group).success || !/^[a-z_]{1,32}$/.test(dir))
      throw usageError('--group and --dir must be names of directories below ipc/.')
    const { content, id } = contentOf(given)
    if (given.wait !== undefined && id === undefined)
      throw usageError('The file has no id, so no answer will come. Leave --wait out.')
    const hatch = join(config.data, 'ipc', group)
    const directory = join(hatch, dir)
    const found = statSync(directory, { throwIfNoEntry: false })
    if (!found?.isDirectory())
      throw new Failure(
        `There is no directory ${directory}. Register the group first: npx hatchway groups add --help`,
      )
    // Partial files belong in the host's own directory: one made in the agent's would be ours, and in its way.
    const staging = join(config.data, 'spool', 'staging')
    const file = post(directory, content, {
      ...(existsSync(staging) && { staging }),
      ...(process.getuid?.() === 0 && { owner: { uid: found.uid, gid: found.gid } }),
    })
    if (given.wait !== undefined && id !== undefined)
      return printReceipt(join(hatch, 'responses'), id, given.wait, json ?? false)
    if (json) return printJson({ id: id ?? null, file: join(directory, file) })
    const withId = id === undefined ? '' : ` with id ${visible(id)}`
    await printLine(`Posted ${visible(join(directory, file))}${withId}.`)
  },
})

async function printReceipt(directory: string, id: string, timeout: number, json: boolean): Promise<void> {
  const { waitForReceipt } = await import('../receipt.ts')
  const receipt = await withProgress('Waiting for the answer', () => waitForReceipt(directory, id, timeout))
  if (!receipt) {
    throw new Failure(
      `No answer to ${id} within ${timeout} seconds. Is a daemon running on this data directory? (npx hatchway up)`,
      exitCodes.noAnswer,
    )
  }
  const isRefused = receipt.ok === false || receipt.error !== undefined
  if (isRefused) process.exitCode = exitCodes.refused
  if (json) return printJson(receipt)
  await printLine(
    isRefused ? `Refused: ${safeJson(receipt.error)}` : `Done: ${safeJson(receipt.result ?? receipt)}`,
  )
}

function contentOf({ raw, type, payload, ...given }: PostOptions): {
  content: string | Uint8Array
  id?: string | undefined
} {
  if (raw !== undefined) {
    if (type !== undefined || payload !== undefined)
      throw usageError('Use either --raw, or --type and --payload.')
    const content = readFileSync(raw === '-' ? 0 : raw)
    return { content, id: idIn(content.toString('utf8')) }
  }
  if (type === undefined) throw usageError('Use --type and --payload, or --raw.')
  const id = given.id ?? uuid7()
  const parsed = parseJson(payload === '-' ? readFileSync(0, 'utf8') : (payload ?? '{}'))
  if (parsed instanceof SyntaxError) throw usageError(`--payload is not JSON: ${parsed.message}.`)
  const body = { version: 1, id, type, payload: parsed, sent_at: new Date().toISOString() }
  return { content: `${JSON.stringify(body)}\n`, id }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) return error
    throw error
  }
}

/** The receipt is named after it, so only an id that is safe in a path. */
function idIn(text: string): string | undefined {
  const body = parseJson(text)
  if (typeof body !== 'object' || body === null) return undefined
  const id = 'id' in body ? body.id : 'request_id' in body ? body.request_id : undefined
  return typeof id === 'string' && /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/.test(id) ? id : undefined
}
