import type { z } from 'zod'
import type { Plugin, PluginManifest } from './types.ts'

/**
 * Makes a plugin: a function of its settings, for the list `plugins` of a configuration.
 *
 *   export default definePlugin({ name: 'telegram', version: '1.0.0', settings: z.strictObject({ … }), load: () => import('./open.ts') })
 */
export const definePlugin =
  <S extends z.ZodType, G extends z.ZodType>(manifest: PluginManifest<S, G>) =>
  (input?: z.input<S>): Plugin => ({ ...manifest, input: input ?? {} })

const namePattern = /^[a-z][a-z0-9-]{0,31}$/

export const isPlugin = (value: unknown): value is Plugin =>
  typeof value === 'object' &&
  value !== null &&
  'name' in value &&
  typeof value.name === 'string' &&
  namePattern.test(value.name) &&
  'version' in value &&
  typeof value.version === 'string' &&
  'settings' in value &&
  'load' in value &&
  typeof value.load === 'function'
