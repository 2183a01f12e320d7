import { pluginSettings } from '../config/plugin-settings.ts'
import { type Config, ConfigError, settingsOf } from '../config.ts'
import { isPlugin } from '../plugin-api/define.ts'
import type { ConfiguredPlugin } from '../plugin-api/open.ts'
import type { PluginCli, PluginManifest } from '../plugin-api/types.ts'
import { calendar } from '../plugins/calendar/plugin.ts'
import { channels } from '../plugins/channels/plugin.ts'
import { deploy } from '../plugins/deploy/plugin.ts'
import { jobs } from '../plugins/jobs/plugin.ts'
import { mcp } from '../plugins/mcp/plugin.ts'
import { memory } from '../plugins/memory/plugin.ts'
import { periodic } from '../plugins/periodic/plugin.ts'
import { webhook } from '../plugins/webhook/plugin.ts'
import { worktrees } from '../plugins/worktrees/plugin.ts'

interface BuiltInPlugin {
  manifest: PluginManifest
  settings(config: Config): unknown
  /** of single groups: `groups.<folder>.<groupKey>`; left out: the plugin's name */
  groupKey?: string
}

/** Plugins that ship with Hatchway, and under which names of the configuration their settings are. */
const builtIn: readonly BuiltInPlugin[] = [
  { manifest: worktrees(), settings: config => config.repos, groupKey: 'repo' },
  { manifest: jobs(), settings: ({ hostJobs }) => hostJobs },
  { manifest: periodic(), settings: () => ({}) },
  { manifest: memory(), settings: config => config.memory },
  { manifest: calendar(), settings: config => config.calendars },
  { manifest: mcp(), settings: config => config.mcp },
  { manifest: webhook(), settings: config => config.webhook },
  { manifest: channels(), settings: ({ agents }) => ({ assistant: agents.assistant }) },
  { manifest: deploy(), settings: config => config.deploy },
]

/** The plugins of a configuration, ours first, with their settings. */
export function configuredPlugins(config: Config, environment: NodeJS.ProcessEnv): ConfiguredPlugin[] {
  const ofGroups = ({ name, groupSettings: schema }: PluginManifest, key = name) => ({
    groupSettings(folder: string) {
      const given = settingsOf(config, folder)[key]
      return given === undefined ? undefined : schema?.parse(given)
    },
    configuredGroups: () =>
      Object.keys(config.groups).filter(folder => config.groups[folder]?.[key] !== undefined),
  })
  return [
    ...builtIn.map(({ manifest, settings, groupKey }) => ({
      manifest,
      settings: settings(config),
      ...ofGroups(manifest, groupKey),
      isBuiltIn: true,
    })),
    ...config.plugins.map(given => {
      const parsed = pluginSettings(given, environment)
      if (!parsed.ok) throw new ConfigError(parsed.problems.join('\n'))
      if (!isPlugin(given)) throw new ConfigError(`${given.name} is not a plugin.`)
      return {
        manifest: given,
        settings: parsed.settings,
        ...ofGroups(given),
        isBuiltIn: false,
      }
    }),
  ]
}

/** What a plugin adds to the command line: `hatchway <name> …`. */
export interface PluginCommand extends PluginCli {
  name: string
}

export const pluginCommands = (config: Config): PluginCommand[] =>
  configuredPlugins(config, process.env).flatMap(({ manifest }) =>
    Object.entries(manifest.cli ?? {}).map(([name, command]) => ({ ...command, name })),
  )
