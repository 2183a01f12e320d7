import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { dirname, extname, join } from 'node:path'
import { z } from 'zod'
import { startChild } from '../../../run/child.ts'
import type { Places } from './places.ts'
import { type AssistantTool, ownTool, said, ToolProblem } from './types.ts'

export interface FileOptions {
  places: Places
  /** how many characters a result may have */
  longest: number
  variables: NodeJS.ProcessEnv
}

const largestText = 4_194_304
/** What the APIs take, in base64, is a third more. */
const largestImage = 3_670_016
const imageTypes: Readonly<Record<string, string>> = {
  '.png': 'image/png',
  '.jpg': 'image/jpeg',
  '.jpeg': 'image/jpeg',
  '.gif': 'image/gif',
  '.webp': 'image/webp',
}
const mostEntries = 500
/** Full of what nobody has written, or the agent's own. */
const skipped = ['.git', 'node_modules', '.home']

const path = z.string().min(1)

export const fileTools = (options: FileOptions): readonly AssistantTool[] => [
  readTool(options),
  writeTool(options),
  editTool(options),
  listTool(options),
  searchTool(options),
]

const readTool = ({ places, longest }: FileOptions) =>
  ownTool({
    name: 'read_file',
    description: 'Reads a text file, or shows you an image (PNG, JPEG, GIF, WebP).',
    input: z.strictObject({
      path,
      from_line: z.int().min(1).optional(),
      lines: z.int().min(1).optional(),
    }),
    call({ path, from_line: from = 1, lines: count }) {
      const found = places.find(path, 'read')
      const mime = imageTypes[extname(found).toLowerCase()]
      const content = contentOf(found, path, mime ? largestImage : largestText)
      if (mime) return { parts: [{ type: 'image', mime, data: content.toString('base64') }], isError: false }
      if (content.includes(0)) throw new ToolProblem(`${path} is not a text (${content.length} bytes).`)
      const lines = content.toString('utf8').split('\n')
      const wanted = lines.slice(from - 1, count === undefined ? undefined : from - 1 + count)
      return said(page(wanted, from, lines.length, longest) || '(empty)')
    },
  })

/** As many whole lines as fit, and where to go on. */
function page(lines: readonly string[], from: number, total: number, longest: number): string {
  let size = 0
  let count = 0
  for (const line of lines) {
    size += line.length + 1
    if (size > longest && count > 0) break
    count++
  }
  const text = lines.slice(0, count).join('\n').slice(0, longest).toWellFormed()
  const last = from - 1 + count
  return last < total && count < lines.length
    ? `${text}\n… (lines ${from} to ${last} of ${total}; go on with from_line ${last + 1})`
    : text
}

const writeTool = ({ places }: FileOptions) =>
  ownTool({
    name: 'write_file',
    description: 'Writes a whole text file, new or in place of the old one.',
    input: z.strictObject({ path, content: z.string() }),
    call({ path, content }) {
      const found = places.find(path, 'write')
      makeFolder(dirname(found), path)
      writeInto(found, path, content)
      return said(`${places.shown(found)} is written (${Buffer.byteLength(content)} bytes).`)
    },
  })

const editTool = ({ places }: FileOptions) =>
  ownTool({
    name: 'edit_file',
    description: 'Replaces a piece of a text file. `old` has to be in it exactly once, or set `all`.',
    input: z.strictObject({ path, old: z.string().min(1), new: z.string(), all: z.boolean().optional() }),
    call({ path, old, new: replacement, all = false }) {
      const found = places.find(path, 'write')
      const text = contentOf(found, path, largestText).toString('utf8')
      const count = text.split(old).length - 1
      if (count === 0)
        throw new ToolProblem(
          `\`old\` is not in ${path}. Read the file and take the text exactly as it is there.`,
        )
      if (count > 1 && !all)
        throw new ToolProblem(
          `\`old\` is in ${path} ${count} times. Give more of the text around it, or set \`all\`.`,
        )
      writeInto(
        found,
        path,
        all ? text.replaceAll(old, () => replacement) : text.replace(old, () => replacement),
      )
      return said(`${places.shown(found)} is changed${count > 1 ? ` in ${count} places` : ''}.`)
    },
  })

const listTool = ({ places, longest }: FileOptions) =>
  ownTool({
    name: 'list_files',
    description: 'Lists a folder: yours, if no path is given.',
    input: z.strictObject({ path: path.optional(), recursive: z.boolean().optional() }),
    call({ path = '.', recursive = false }) {
      const found = places.find(path, 'read')
      const lines: string[] = []
      const list = (directory: string, before: string) => {
        for (const { name } of entriesOf(directory, path)) {
          if (lines.length >= mostEntries) return
          const about = lstatSync(join(directory, name), { throwIfNoEntry: false })
          if (!about || (before === '' && name === '.home')) continue
          const isDirectory = about.isDirectory()
          lines.push(before + name + (isDirectory ? '/' : about.isFile() ? `  ${about.size}` : '  (no file)'))
          if (recursive && isDirectory && !skipped.includes(name))
            list(join(directory, name), `${before}${name}/`)
        }
      }
      list(found, '')
      const text = lines.join('\n').slice(0, longest)
      return said(lines.length >= mostEntries ? `${text}\n… (more than ${mostEntries})` : text || '(empty)')
    },
  })

const searchMs = 20_000
const longestLine = 300

const searchTool = ({ places, longest, variables }: FileOptions) =>
  ownTool({
    name: 'search_files',
    description: 'Finds lines in files, by an extended regular expression (grep -E).',
    input: z.strictObject({ pattern: z.string().min(1), path: path.optional() }),
    async call({ pattern, path = '.' }, signal) {
      const found = places.find(path, 'read')
      const child = startChild(
        'grep',
        ['-rnIE', ...skipped.map(name => `--exclude-dir=${name}`), '-e', pattern, '--', places.shown(found)],
        {
          cwd: places.group,
          env: variables,
          abort: signal,
          timeoutMs: searchMs,
          keep: 4 * longest,
          keepEnd: 'first',
        },
      )
      const { code, stdout, stderr, failure, timedOut, cut } = await child.exited
      if (failure !== undefined)
        throw new ToolProblem(`grep cannot be started here: ${failure}. Use the shell.`)
      // 1 is nothing found; 2 may be one folder that cannot be read among others.
      if (stdout === '' && code !== 1)
        throw new ToolProblem(timedOut ? 'The search took too long.' : stderr.trim() || 'The search failed.')
      const text = stdout
        .split('\n')
        .map(line => (line.length > longestLine ? `${line.slice(0, longestLine)}…` : line))
        .join('\n')
        .trimEnd()
      if (text === '') return said('Nothing was found.')
      return said(
        cut || text.length > longest
          ? `${text.slice(0, longest)}\n… (there is more: search for less)`.toWellFormed()
          : text,
      )
    },
  })

function contentOf(found: string, path: string, largest: number): Buffer {
  const fd = open(found, path, constants.O_RDONLY)
  try {
    const about = fstatSync(fd)
    if (!about.isFile())
      throw new ToolProblem(`${path} is ${about.isDirectory() ? 'a folder' : 'no ordinary file'}.`)
    if (about.size > largest)
      throw new ToolProblem(
        `${path} is too large to be read (${about.size} bytes). Use the shell to see parts of it.`,
      )
    return readFileSync(fd)
  } finally {
    closeSync(fd)
  }
}

function writeInto(found: string, path: string, content: string): void {
  const fd = open(found, path, constants.O_WRONLY | constants.O_CREAT)
  try {
    if (!fstatSync(fd).isFile()) throw new ToolProblem(`${path} is no ordinary file.`)
    writeFileSync(fd, content)
    // Written over the old content, which may have been longer.
    ftruncateSync(fd, Buffer.byteLength(content))
  } finally {
    closeSync(fd)
  }
}

function makeFolder(folder: string, path: string): void {
  try {
    mkdirSync(folder, { recursive: true })
  } catch (error) {
    throw new ToolProblem(reasonFor(error, path))
  }
}

/** Links were followed when the path was found; one that is there now has come since. */
function open(found: string, path: string, flags: number): number {
  try {
    return openSync(found, flags | constants.O_NOFOLLOW | constants.O_NONBLOCK, 0o644)
  } catch (error) {
    throw new ToolProblem(reasonFor(error, path))
  }
}

function entriesOf(directory: string, path: string) {
  try {
    return readdirSync(directory, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))
  } catch (error) {
    throw new ToolProblem(reasonFor(error, path))
  }
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'is not there',
  ENOTDIR: 'is no folder',
  EISDIR: 'is a folder',
  EACCES: 'may not be opened',
  EROFS: 'is on a read-only file system',
  ELOOP: 'is a link',
}

const reasonFor = (error: unknown, path: string): string => {
  const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
  return `${path} ${reasons[code] ?? `cannot be opened (${code})`}.`
}
