import { folderSchema, toolNameSchema } from '@hatchway/protocol'
import { z } from 'zod'
import { isWithoutPassword, variableName } from '../../config/values.ts'

/**
 * Lent MCP servers: which ones the host runs or reaches, with what of its own credentials, and who may use which of
 * their tools. Keys do not belong in the file: a value can name the variable of the host's environment that holds it.
 */
/** As it stands, or what a variable of the host's environment holds, after the words `prefix`. */
const value = z.union([
  z.string().max(8192),
  z.strictObject({ variable: variableName, prefix: z.string().max(1024).default('') }),
])

const label = z.enum(['yes', 'no', 'forbidden'])

/** What can be said of a whole server, and of a single tool again. */
const lending = {
  groups: z
    .union([z.enum(['all', 'main']), z.array(folderSchema)])
    .optional()
    .describe('Who may use it: `main`, `all`, or a list of folders. Left out: main only.'),
  labels: z
    .strictObject({
      public_source: label.optional(),
      secret_data: label.optional(),
      public_sink: label.optional(),
      dangerous_writes: label.optional(),
    })
    .optional()
    .describe('What is known of the data it gives and takes. Left out: nothing, which counts as the worst.'),
  timeoutMs: z.int().min(100).max(86_400_000).optional().describe('How long a call may take.'),
  answerBytes: z.int().min(1).max(67_108_864).optional().describe('The largest answer of a call.'),
  repeatable: z
    .boolean()
    .optional()
    .describe(
      'Whether a call may be made again after a crash. Left out: if the tool says that it only reads.',
    ),
}

const toolSettings = z.strictObject({
  ...lending,
  name: toolNameSchema.max(100).optional().describe('What agents call it. Left out: `<server>_<tool>`.'),
})

const toolName = z.string().min(1).max(1024)

/** One that was added with `mcp add`: it is kept in a file for the host's user alone, so keys may stand in it. */
export const addedServerSchema = z
  .strictObject({
    command: z
      .union([z.string().min(1), z.array(z.string()).min(1)])
      .optional()
      .describe(
        'The program that is run and speaks MCP on its standard streams, alone or with its arguments.',
      ),
    args: z.array(z.string()).optional().describe('More arguments for it.'),
    env: z
      .union([z.array(variableName), z.record(variableName, value)])
      .optional()
      .describe(
        'Variables for it besides PATH, HOME and LANG: names of the host’s own, or an object of names and values.',
      ),
    cwd: z.string().min(1).optional().describe('The directory it runs in. Left out: the daemon’s.'),
    url: z
      .url({ protocol: /^https?$/ })
      .refine(isWithoutPassword, 'must not hold a user or a password; use headers')
      .optional()
      .describe('Instead of a command: the address of a server that speaks MCP over HTTP.'),
    headers: z
      .record(z.string().regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}$/, 'must be the name of a header'), value)
      .optional()
      .describe('Headers that are sent to it, and to nobody it redirects to.'),
    tools: z
      .union([z.array(toolName), z.record(toolName, toolSettings)])
      .optional()
      .describe('The tools that are lent, as a list or with settings of their own. Left out: all of them.'),
    ...lending,
  })
  .superRefine((server, context) => {
    const refuse = (path: string, message: string) =>
      context.addIssue({ code: 'custom', path: [path], message })
    if (server.command === undefined && server.url === undefined)
      refuse('command', 'must be given, or a url in its place')
    if (server.command !== undefined && server.url !== undefined)
      refuse('url', 'cannot be given together with a command')
    if (server.url !== undefined) {
      for (const name of ['args', 'env', 'cwd'] as const)
        if (server[name] !== undefined) refuse(name, 'belongs to a command, and there is a url')
    } else if (server.headers !== undefined) refuse('headers', 'belong to a url, and there is none')
  })

const lentServerSchema = addedServerSchema.superRefine((server, context) => {
  for (const [name, given] of Object.entries(server.headers ?? {})) {
    if (typeof given === 'string' && keyHeaders.has(name.toLowerCase()))
      context.addIssue({
        code: 'custom',
        path: ['headers'],
        message: `${name} holds a key: name the variable that has it, as { variable: '…' }`,
      })
  }
})

const keyHeaders = new Set(['authorization', 'proxy-authorization', 'cookie', 'x-api-key'])

export const serverNameSchema = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,31}$/, 'must be 1 to 32 small letters, digits and "-", starting with a letter')

export const lentServersSchema = z
  .record(serverNameSchema, lentServerSchema)
  .default({})
  .describe('MCP servers that are lent to agents, by name; see docs/services.md. Not in the environment.')
  .meta({ allowed: 'an object of servers by name', otherwise: 'none' })

export type LentServers = z.output<typeof lentServersSchema>
export type LentServer = LentServers[string]
/** A value of the configuration that may be kept in the host's environment. */
export type ConfiguredValue = z.output<typeof value>
