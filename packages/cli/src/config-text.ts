/** What `hatchway init` was told. */
export interface Answers {
  name: string
  driver: string
  keyVariable: string
  sandbox: string
  timezone: string
  port: number
  data: string | undefined
  group: { folder: string; jid: string; name: string } | undefined
}

const text = (value: string) => `'${value.replaceAll(/[\\']/g, '\\$&').replaceAll('\n', '\\n')}'`

/** A configuration file that says what was answered, and where to read on. */
export function configText(answers: Answers, canImport: boolean): string {
  const { name, driver, keyVariable, sandbox, timezone, port, data } = answers
  const lines = [
    ...(data === undefined ? [] : [`  data: ${text(data)},`]),
    `  timezone: ${text(timezone)},`,
    '  agents: {',
    `    assistant: ${text(name)},`,
    `    driver: ${text(driver)},`,
    ...(driver === 'command' ? ["    command: ['opencode', 'run'],"] : []),
    `    sandbox: ${text(sandbox)},`,
    '  },',
    ...(driver === 'claude'
      ? [
          '  // The key itself stays in the environment of the daemon, and no sandbox sees it.',
          `  model: { keyVariable: ${text(keyVariable)} },`,
        ]
      : []),
    `  web: { port: ${port} },`,
  ].join('\n')
  return canImport
    ? `import { defineConfig } from '@hatchway/host/config'\n\n// docs/configuration.md has every setting; \`npx hatchway config\` shows what is in effect.\nexport default defineConfig({\n${lines}\n})\n`
    : `// docs/configuration.md has every setting; \`npx hatchway config\` shows what is in effect.\nexport default {\n${lines}\n}\n`
}
