import { createHash } from 'node:crypto'
import type { Group, HostOffer, ServiceListing, Services } from '@hatchway/protocol'
import type { Logger } from 'pino'
import { z } from 'zod'
import type { Service, ServiceTool } from '../commands/service-tools.ts'
import { isAllowed, type ToolCatalogue } from '../commands/service-tools.ts'
import type { CommandDefinition } from '../commands/types.ts'
import { tightened } from '../guard/gates.ts'
import type { TrustLabels } from '../guard/labels.ts'

/** Every tool of every service, by its name, and which groups may use it. */
export interface Catalogue extends ToolCatalogue {
  /** in the order in which the services were given */
  toolsFor(group: Group): readonly ServiceTool[]
  services(): readonly ServiceReport[]
}

/** A service as people are told of it. */
interface ServiceReport {
  name: string
  ok: boolean
  text: string
  tools: readonly ServiceTool[]
}

export interface ServiceCatalogue extends Catalogue {
  start(): Promise<void>
  stop(): Promise<void>
}

export function createCatalogue(options: {
  services: readonly Service[]
  /** what the operator says of single tools */
  labels?: Readonly<Record<string, TrustLabels>>
  log: Logger
  /** there are others than before */
  changed(): void
}): ServiceCatalogue {
  const { services, log } = options
  let tools = new Map<string, ServiceTool>()
  const present = () => services.flatMap(service => service.members?.() ?? [service])

  const collect = () => {
    const found = new Map<string, ServiceTool>()
    for (const service of present()) {
      for (const tool of service.tools()) {
        const other = found.get(tool.name)
        if (other) {
          log.warn(
            { tool: tool.name, service: service.name, other: other.service },
            'two services have a tool of this name; the first one keeps it',
          )
        } else found.set(tool.name, { ...tool, labels: tightened(tool.labels, options.labels?.[tool.name]) })
      }
    }
    tools = found
  }
  collect()

  return {
    find: name => tools.get(name),
    toolsFor: group => [...tools.values()].filter(tool => isAllowed(tool.groups, group)),
    services: () =>
      present().map(service => ({
        name: service.name,
        ...(service.state?.() ?? { ok: true, text: 'ready' }),
        tools: [...tools.values()].filter(tool => tool.service === service.name),
      })),
    async start() {
      await Promise.all(
        services.map(async service => {
          try {
            await service.start?.({
              changed: () => {
                collect()
                options.changed()
              },
              log: log.child({ service: service.name }),
            })
          } catch (error) {
            log.error({ err: error, service: service.name }, 'a service could not be started')
          }
        }),
      )
      collect()
      options.changed()
    },
    async stop() {
      await Promise.all(
        services.map(async service => {
          try {
            await service.stop?.()
          } catch (error) {
            log.error({ err: error, service: service.name }, 'a service could not be stopped properly')
          }
        }),
      )
    },
  }
}

/** Changes when what any group may ask for does. */
export function digestOf(catalogue: Catalogue, questionMs: number): string {
  const hash = createHash('sha256').update(String(questionMs))
  for (const { tools } of catalogue.services()) {
    for (const tool of tools) hash.update(JSON.stringify(tool))
  }
  return hash.digest('base64url')
}

/** What `services.json` tells the group's agent. */
export const listingFor = (
  catalogue: Catalogue,
  group: Group,
  {
    questionMs,
    commands,
    more,
  }: { questionMs: number; commands: readonly HostOffer[]; more: readonly ServiceListing[] },
): Services => ({
  tools: [...catalogue.toolsFor(group).map(listingOf), ...more],
  questions: { timeout_ms: questionMs },
  commands: [...commands],
})

const listingOf = (tool: ServiceTool): ServiceListing => ({
  name: tool.name,
  title: tool.title,
  description: tool.description,
  service: tool.service,
  input_schema: tool.inputSchema,
  ...(tool.outputSchema ? { output_schema: tool.outputSchema } : {}),
  annotations: tool.annotations,
  answers: tool.answers,
  timeout_ms: tool.kind === 'later' ? tool.timeoutMs : instantMs,
})

/** Commands of plugins, as agents that may use them see them among their tools. */
export const commandListings = (commands: readonly CommandDefinition[], group: Group): ServiceListing[] =>
  commands.flatMap(({ type, tool, payload, permission, provider }) =>
    tool && permission[group.main ? 'main' : 'others'] !== 'never'
      ? [
          {
            name: type.replace('.', '_').replaceAll('-', '_'),
            title: tool.title,
            description: tool.description,
            service: provider ?? 'host',
            input_schema: z.toJSONSchema(payload, { io: 'input' }),
            annotations: {},
            answers: 'facts',
            timeout_ms: tool.timeoutMs ?? instantMs,
            command: type,
          },
        ]
      : [],
  )

/** for the agent to wait: it is done with the command, and only a busy host can make it wait */
const instantMs = 60_000
