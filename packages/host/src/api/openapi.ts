import { z } from 'zod'
import { version } from '../base/version.ts'
import { failureAnswer } from './failure.ts'
import type { Description } from './route.ts'

/** Routes, and where they lie. */
export interface Published {
  prefix: string
  routes: readonly Description[]
}

type Json = Record<string, unknown>

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const about = `What the console and the command line use. Browsers sign in (see /api/me, /api/login); each route names the role it
needs as \`x-hatchway-role\`, and every change brings the header \`x-hatchway-csrf\` along. The same routes are answered on the
daemon’s socket, \`state/api.sock\` in the data directory, to whoever may enter it: there what is below /api/host lies at
the top, and /api/openapi.json is /openapi.json.`

/** The description of all routes, in OpenAPI 3.1, from the schemas that check them. */
export function openApiDocument(published: readonly Published[]): Json {
  const components: Json = {}
  const schemaOf = (schema: z.ZodType, io: 'input' | 'output'): Json => {
    const { $schema: _, $defs, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any', override })
    for (const [name, named] of Object.entries($defs ?? {})) components[name] = inPlace(named)
    return inPlace(rest)
  }
  const failure = {
    description: 'Refused, with a code of a closed list and a sentence that says what to do',
    content: { 'application/json': { schema: schemaOf(failureAnswer.meta({ id: 'Failure' }), 'output') } },
  }
  const paths: Record<string, Json> = {}
  for (const { prefix, routes } of published) {
    for (const route of routes) {
      const path = `${prefix}${route.path}`.replace(/:(\w+)/g, '{$1}')
      paths[path] = { ...paths[path], [route.method]: operationOf(route, path, schemaOf, failure) }
    }
  }
  const tags = [...new Set(published.flatMap(({ routes }) => routes.map(({ tag }) => tag)))]
  return {
    openapi: '3.1.0',
    info: { title: 'Hatchway', version, description: about, license: { name: 'MIT', identifier: 'MIT' } },
    servers: [{ url: '/' }],
    tags: tags.map(name => ({ name })),
    paths,
    components: {
      schemas: components,
      securitySchemes: {
        session: {
          type: 'apiKey',
          in: 'cookie',
          name: 'hatchway-PORT',
          description: 'Given for the printed link, a password or an OpenID Connect provider’s word',
        },
        csrf: { type: 'apiKey', in: 'header', name: 'x-hatchway-csrf', description: 'As /api/me says' },
      },
    },
  }
}

function operationOf(
  route: Description,
  path: string,
  schemaOf: (schema: z.ZodType, io: 'input' | 'output') => Json,
  failure: Json,
): Json {
  const { method, summary, tag, role, answer, gives = 'application/json', takes, status = 200 } = route
  const isChange = method !== 'get'
  const found = {
    description: summary,
    content: { [gives]: { schema: schemaOf(answer, 'output') } },
  }
  const answers: Json = { [status]: status === 302 ? { description: summary } : found }
  if (route.otherStatus) answers[route.otherStatus] = found
  const parameters = [
    ...parametersIn('path', route.params, schemaOf),
    ...parametersIn('query', route.query, schemaOf),
  ]
  const content =
    takes === undefined
      ? route.body && { 'application/json': { schema: schemaOf(route.body, 'input') } }
      : { [takes]: { schema: {} } }
  return {
    operationId: `${method}${path.replace(/^\/api/, '').replace(/[^A-Za-z0-9]+(\w?)/g, (_, letter: string) => letter.toUpperCase())}`,
    summary,
    tags: [tag],
    'x-hatchway-role': role,
    security: role === 'anyone' ? [] : [isChange ? { session: [], csrf: [] } : { session: [] }],
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(content ? { requestBody: { required: true, content } } : {}),
    responses: { ...answers, default: failure },
  }
}

function parametersIn(
  place: 'path' | 'query',
  schema: z.ZodObject | undefined,
  schemaOf: (schema: z.ZodType, io: 'input' | 'output') => Json,
): Json[] {
  if (!schema) return []
  const { properties, required } = schemaOf(schema, 'input')
  const needed = new Set(Array.isArray(required) ? required : [])
  return Object.entries(isObject(properties) ? properties : {}).map(([name, property]) => {
    const { description, ...rest } = isObject(property) ? property : {}
    return {
      name,
      in: place,
      required: needed.has(name),
      ...(description === undefined ? {} : { description }),
      schema: rest,
    }
  })
}

/** What reads worse in JSON Schema than it is meant. */
function override({ jsonSchema }: { jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  if (jsonSchema.format === 'date-time') delete jsonSchema.pattern
  const { wholeNumber } = jsonSchema
  if (!isObject(wholeNumber)) return
  delete jsonSchema.pattern
  delete jsonSchema.wholeNumber
  Object.assign(jsonSchema, { type: 'integer', ...wholeNumber })
}

/** References lead to the document's components, not into the schema itself. */
function inPlace(schema: unknown): Json {
  const text = JSON.stringify(schema).replaceAll('"#/$defs/', '"#/components/schemas/')
  const parsed: unknown = JSON.parse(text)
  if (!isObject(parsed)) return {}
  const { id: _, ...rest } = parsed
  return rest
}
