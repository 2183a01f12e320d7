/** The answers given to `hatchway init`. */
export interface Answers {
  name: string
  /** provider/name; empty: none is named */
  model: string
  driver: string
  keyVariable: string
  sandbox: string
  timezone: string
  port: number
  data: string | undefined
  group: { folder: string; jid: string; name: string } | undefined
}

const literal = (value: string) => `'${value.replaceAll(/[\\']/g, '\\$&').replaceAll('\n', '\\n')}'`

const intro = '// docs/configuration.md has every setting; `npx hatchway config` shows the values in effect.'

/** A configuration file for these answers. */
export function configText(answers: Answers, canImport: boolean): string {
  const { name, model, driver, keyVariable, sandbox, timezone, port, data } = answers
  const settings = [
    ...(data === undefined ? [] : [`  data: ${literal(data)},`]),
    `  timezone: ${literal(timezone)},`,
    '  agents: {',
    `    assistant: ${literal(name)},`,
    `    driver: ${literal(driver)},`,
    ...(driver === 'acp' ? ["    command: ['opencode', 'acp'],"] : []),
    ...(driver === 'command' ? ["    command: ['opencode', 'run'],"] : []),
    `    sandbox: ${literal(sandbox)},`,
    '  },',
    ...(model === '' ? [] : [`  model: ${literal(model)},`]),
    ...(driver === 'claude' && model === ''
      ? [
          '  // The key itself stays in the environment of the daemon; no sandbox sees it.',
          `  model: { keyVariable: ${literal(keyVariable)} },`,
        ]
      : []),
    `  web: { port: ${port} },`,
  ]
  return settingsText(settings, canImport)
}

/** A configuration file with these lines. */
export function settingsText(settings: readonly string[], canImport: boolean): string {
  const lines = canImport
    ? ["import { defineConfig } from 'hatchway/config'", '', intro, 'export default defineConfig({']
    : [intro, 'export default {']
  return [...lines, ...settings, canImport ? '})' : '}', ''].join('\n')
}
