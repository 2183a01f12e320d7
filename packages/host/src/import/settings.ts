import {
  copyFileSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'

/**
 * What NanoClaw's host puts into a group's `.claude` before each start: its settings, and the skills of the installation
 * over those that the group has of its own. Gathered in a folder that is removed afterwards.
 */
export function withSettings<T>(from: string, folder: string, use: (gathered: Gathered) => T): T | undefined {
  const own = join(from, 'data', 'sessions', folder, '.claude')
  const skills = [join(own, 'skills'), join(from, 'container', 'skills')].filter(isDirectory)
  const settings = join(own, 'settings.json')
  if (skills.length === 0 && !existsSync(settings)) return undefined
  const directory = mkdtempSync(join(tmpdir(), 'hatchway-settings-'))
  try {
    for (const source of skills)
      cpSync(source, join(directory, 'skills'), {
        recursive: true,
        filter: path => !lstatSync(path).isSymbolicLink(),
      })
    const left = lstatSync(settings, { throwIfNoEntry: false })?.isFile()
      ? takeSettings(settings, join(directory, 'settings.json'))
      : []
    return use({ directory, left })
  } finally {
    rmSync(directory, { recursive: true })
  }
}

export interface Gathered {
  directory: string
  /** settings that are not taken over */
  left: readonly string[]
}

const isDirectory = (path: string) => lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true

const settingsSchema = z.looseObject({ env: z.record(z.string(), z.unknown()).optional() })
/** Keys stay on the host, and where the model is the host says. */
const notTaken = /^(?:ANTHROPIC|AWS|GOOGLE|VERTEX|ONECLI)_|PROXY|KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL/i

function takeSettings(from: string, to: string): readonly string[] {
  let parsed: unknown
  try {
    parsed = JSON.parse(readFileSync(from, 'utf8'))
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
  }
  const settings = settingsSchema.safeParse(parsed)
  if (!settings.success) return ['settings.json, which cannot be read']
  const { env = {}, apiKeyHelper, ...rest } = settings.data
  const left = Object.keys(env).filter(name => notTaken.test(name))
  if (left.length === 0 && apiKeyHelper === undefined) {
    copyFileSync(from, to)
    return []
  }
  const kept = Object.fromEntries(Object.entries(env).filter(([name]) => !left.includes(name)))
  writeFileSync(to, `${JSON.stringify({ ...rest, env: kept }, null, 2)}\n`)
  return [...left.map(name => `env.${name}`), ...(apiKeyHelper === undefined ? [] : ['apiKeyHelper'])]
}
