import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { LaterTool } from '../../commands/service-tools.ts'
import { defaultAnswerBytes, defaultTimeoutMs } from '../../services/define.ts'
import { type Asking, askingOf } from './offers.ts'
import type { LentServer } from './settings.ts'

/** A tool of a server as agents are shown it, and what it is called there. */
export interface Lent extends Omit<LaterTool, 'call' | 'check' | 'kind'> {
  remoteName: string
  /** how it is asked for, if it is no tool of the server's own */
  asking?: Asking | undefined
  /** it runs as a task, which is asked about until it is over */
  isTask: boolean
}

export interface Lending {
  tools: readonly Lent[]
  /** what is not lent although one might expect it, and why; each a sentence */
  problems: readonly string[]
}

const mostTools = 200
const mostProblems = 10
const longestName = 100
const longestTitle = 200
const longestDescription = 4096
const largestSchema = 65_536
const deepestSchema = 40
/** of all tools of a server together: every agent that may use them is given the whole list */
const largestListing = 1_048_576

const schemaSchema = z.record(z.string(), z.unknown())

/** Wider than the protocol: one odd tool must not cost all the others. */
const listedTool = z.object({
  name: z.string().min(1).max(1024),
  title: z.string().optional().catch(undefined),
  description: z.string().optional().catch(undefined),
  inputSchema: schemaSchema.refine(schema => schema.type === undefined || schema.type === 'object'),
  outputSchema: schemaSchema.optional().catch(undefined),
  annotations: z
    .object({
      title: z.string().optional().catch(undefined),
      readOnlyHint: z.boolean().optional().catch(undefined),
      destructiveHint: z.boolean().optional().catch(undefined),
      idempotentHint: z.boolean().optional().catch(undefined),
      openWorldHint: z.boolean().optional().catch(undefined),
    })
    .optional()
    .catch(undefined),
  execution: z.object({ taskSupport: z.string().optional() }).optional().catch(undefined),
})
type Listed = z.output<typeof listedTool>

/** Chooses from what a server lists, gives it names, and holds it to limits: a list comes from a stranger. */
export function lendingOf(server: string, settings: LentServer, listed: readonly unknown[]): Lending {
  const problems: string[] = []
  const tools = new Map<string, Lent>()
  const seen = new Set<string>()
  let size = 0
  const own = settings.tools === undefined || Array.isArray(settings.tools) ? {} : settings.tools
  const chosen =
    settings.tools === undefined
      ? undefined
      : new Set(Array.isArray(settings.tools) ? settings.tools : Object.keys(settings.tools))

  const lend = (tool: Listed, asking: Asking | undefined): string | undefined => {
    if (seen.has(tool.name)) return 'is listed twice; the first one counts'
    seen.add(tool.name)
    const { name: ownName, ...ownSettings } = (Object.hasOwn(own, tool.name) && own[tool.name]) || {}
    const name = ownName ?? nameFor(server, tool.name)
    if (name === undefined) return 'has a name that cannot be shown; give it one in the configuration'
    if (tools.has(name)) return `would be called ${name}, as another one; give it a name in the configuration`
    if (!isModest(tool.inputSchema)) return 'has a schema that is too large or too deep'
    const output = tool.outputSchema
    if (output && !isModest(output))
      problems.push(`The output schema of ${quoted(tool.name)} is left out: it is too large.`)
    const { title, ...hints } = tool.annotations ?? {}
    const lending = { ...settings, ...withoutUndefined(ownSettings) }
    const lent: Lent = {
      name,
      remoteName: tool.name,
      asking,
      isTask: tool.execution?.taskSupport === 'required',
      service: `mcp:${server}`,
      origin: originOf(settings, tool.name, asking !== undefined),
      title: cut(tool.title || title || tool.name, longestTitle),
      description: cut(tool.description ?? '', longestDescription),
      inputSchema: { ...tool.inputSchema, type: 'object' },
      ...(output && isModest(output) ? { outputSchema: { ...output } } : {}),
      annotations: withoutUndefined(hints),
      answers: 'content',
      groups: lending.groups ?? 'main',
      labels: withoutUndefined({ ...settings.labels, ...ownSettings.labels }),
      repeatable: lending.repeatable ?? (hints.readOnlyHint === true || hints.idempotentHint === true),
      timeoutMs: lending.timeoutMs ?? defaultTimeoutMs,
      answerBytes: lending.answerBytes ?? defaultAnswerBytes,
    }
    size += Buffer.byteLength(JSON.stringify(lent))
    if (size > largestListing)
      return 'does not fit into the list any more; choose with `tools` in the configuration'
    tools.set(name, lent)
    return undefined
  }

  for (const candidate of listed) {
    const parsed = listedTool.safeParse(candidate)
    const name = parsed.success ? parsed.data.name : nameIn(candidate)
    if (chosen && (name === undefined || !chosen.has(name))) continue
    if (tools.size >= mostTools) {
      problems.push(`Only the first ${mostTools} tools are lent; choose with \`tools\` in the configuration.`)
      break
    }
    const problem = parsed.success
      ? lend(parsed.data, askingOf(candidate))
      : 'is not described as a tool has to be'
    if (problem !== undefined) problems.push(`${quoted(name ?? 'A tool without a name')} ${problem}.`)
  }
  for (const name of chosen ?? []) {
    if (!listed.some(candidate => nameIn(candidate) === name))
      problems.push(`There is no tool ${quoted(name)}.`)
  }
  const more = problems.length - mostProblems
  return {
    tools: [...tools.values()],
    problems: more > 0 ? [...problems.slice(0, mostProblems), `And ${more} more of the kind.`] : problems,
  }
}

/**
 * Which tool of which server it is, whatever it is called here: another program or address under the same name is another
 * one. What keys are is left out, as they change; a hash, as arguments may hold some.
 */
const originOf = (
  { command = [], args = [], url, cwd, env = [], headers = {} }: LentServer,
  tool: string,
  isOffer: boolean,
): string =>
  createHash('sha256')
    .update(
      JSON.stringify([
        ...[tool, isOffer, [command, args].flat(), url, cwd],
        (Array.isArray(env) ? env : Object.keys(env)).toSorted(),
        Object.keys(headers)
          .map(name => name.toLowerCase())
          .toSorted(),
      ]),
    )
    .digest('base64url')

/** Letters, digits, dash and underscore are what every model and every client takes. */
function nameFor(server: string, tool: string): string | undefined {
  const name = `${server}_${tool.replaceAll(/[^A-Za-z0-9_-]/g, '_')}`
  return /[A-Za-z0-9]/.test(tool) && name.length <= longestName ? name : undefined
}

const nameIn = (candidate: unknown): string | undefined =>
  typeof candidate === 'object' &&
  candidate !== null &&
  'name' in candidate &&
  typeof candidate.name === 'string'
    ? candidate.name
    : undefined

/** Looked through level by level: writing it as JSON would end in a stack overflow, or take for ever. */
function isModest(schema: object): boolean {
  let level: unknown[] = [schema]
  let count = 0
  for (let depth = 0; level.length > 0; depth++) {
    const next: unknown[] = []
    for (const value of level) {
      if (typeof value !== 'object' || value === null) continue
      for (const inner of Object.values(value)) {
        if (++count > largestSchema) return false
        next.push(inner)
      }
    }
    if (depth > deepestSchema) return false
    level = next
  }
  return Buffer.byteLength(JSON.stringify(schema)) <= largestSchema
}

const cut = (text: string, most: number): string =>
  (text.length > most ? `${text.slice(0, most - 1)}…` : text).toWellFormed()

const quoted = (name: string): string => JSON.stringify(cut(name, longestName))

const withoutUndefined = <Value extends object>(value: Value) =>
  Object.fromEntries(Object.entries(value).filter(([, entry]) => entry !== undefined)) as {
    [Key in keyof Value]: Exclude<Value[Key], undefined>
  }
