import { pathToFileURL } from 'node:url'
import { toolNameSchema } from '@hatchway/protocol'
import { reasonOf } from '@hatchway/spool'
import type { Logger } from 'pino'
import type { Service } from '../commands/service-tools.ts'

/**
 * Services of the operator's own, from the files that the configuration names. A file that cannot be used is told of
 * where services are listed, and takes nothing else down with it.
 */
export async function loadPlugins(paths: readonly string[], log: Logger): Promise<Service[]> {
  return Promise.all(
    paths.map(async path => {
      try {
        return serviceIn(await import(pathToFileURL(path).href), path)
      } catch (error) {
        const reason = reasonOf(error)
        log.error({ file: path, reason }, 'a service of the configuration cannot be used')
        return broken(path, reason)
      }
    }),
  )
}

function serviceIn(module: unknown, path: string): Service {
  const service =
    typeof module === 'object' && module !== null && 'default' in module ? module.default : undefined
  if (!isService(service)) {
    throw new Error(
      `${path} has no service as its default export. Write: export default defineService({ … })`,
    )
  }
  for (const { name } of service.tools()) {
    if (!toolNameSchema.safeParse(name).success) {
      throw new Error(
        `${path}: ${JSON.stringify(name)} is not a name for a tool; use letters, digits and "_".`,
      )
    }
  }
  return service
}

const isService = (value: unknown): value is Service =>
  typeof value === 'object' &&
  value !== null &&
  'name' in value &&
  typeof value.name === 'string' &&
  'tools' in value &&
  typeof value.tools === 'function'

const broken = (path: string, reason: string): Service => ({
  name: path,
  tools: () => [],
  state: () => ({ ok: false, text: reason }),
})
