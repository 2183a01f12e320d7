import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'

const bin = join(import.meta.dirname, '..', 'bin', 'hatchway.mjs')
const pluginEntry = join(import.meta.dirname, '..', '..', 'host', 'src', 'plugin.ts')

/** A folder with a configuration that has a plugin, and the command line called in it. */
function open() {
  const folder = mkdtempSync(join(tmpdir(), 'hatchway-cli-plugin-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const zod = import.meta.resolve('zod')
  writeFileSync(
    join(folder, 'weather.ts'),
    `import { definePlugin } from ${JSON.stringify(pluginEntry)}
     import { z } from ${JSON.stringify(zod)}
     export const weather = definePlugin({
       name: 'weather',
       version: '1.0.0',
       settings: z.strictObject({}),
       cli: { weather: { summary: 'tell the weather', load: () => import('./cli.ts') } },
       load: async () => ({ open: () => ({}) }),
     })`,
  )
  writeFileSync(
    join(folder, 'cli.ts'),
    `export async function run(args, api) {
       const groups = await api.request('GET', '/groups')
       api.print(JSON.stringify({ args, groups }))
       if (args[0] === 'nowhere') await api.request('GET', '/groups/nowhere')
       return args.length
     }`,
  )
  writeFileSync(
    join(folder, 'hatchway.config.ts'),
    `import { weather } from './weather.ts'
     export default { data: 'data', logLevel: 'silent', agents: { enabled: 'no' }, plugins: [weather()] }`,
  )
  const run = (args: readonly string[], cwd = folder) =>
    new Promise<{ code: number; out: string; err: string }>(resolve => {
      const env = { PATH: process.env.PATH, HOME: folder, TZ: 'UTC' }
      const child = execFile(process.execPath, [bin, ...args], { env, cwd }, (error, out, err) =>
        resolve({ code: typeof error?.code === 'number' ? error.code : error ? -1 : 0, out, err }),
      )
      child.stdin?.end()
    })
  return { folder, run }
}

test('a plugin’s command is listed, gets its own arguments and the API, and says how it ended', async () => {
  const { folder, run } = open()
  expect((await run(['weather'])).err).toContain('There is no data directory')
  await run(['groups', 'add', '--folder', 'main', '--jid', 'web:main', '--name', 'Main', '--main'])

  expect((await run(['--help'])).out).toMatch(/weather .*tell the weather/)
  expect((await run(['--help'], tmpdir())).out).not.toContain('weather')

  const called = await run(['weather', 'in', 'Lisbon', '--wind', '--help'])
  expect(called).toMatchObject({ code: 4, err: '' })
  expect(JSON.parse(called.out)).toMatchObject({
    args: ['in', 'Lisbon', '--wind', '--help'],
    groups: [{ folder: 'main' }],
  })
  const elsewhere = ['weather', '--config', join(folder, 'hatchway.config.ts')]
  expect(await run(elsewhere, tmpdir())).toMatchObject({ code: 0, err: '' })

  expect(await run(['weather', 'nowhere'])).toMatchObject({ code: 2 })
  expect(await run(['wether'])).toMatchObject({ code: 64 })

  writeFileSync(join(folder, 'hatchway.config.ts'), 'export default { sweepMs: -1 }')
  const help = await run(['--help'])
  expect(help).toMatchObject({ code: 0, err: '' })
  expect(help.out).toMatch(/doctor.*Commands of plugins cannot be listed: .*sweepMs/s)
})
