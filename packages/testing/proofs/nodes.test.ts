import { execFile } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { findProgram } from '../../host/src/base/programs.ts'
import { openInstallation } from '../src/daemon/installation.ts'
import { temporaryFolder } from '../src/folders.ts'
import { hatchwayProgram, projectRoot } from '../src/paths.ts'
import { isRadicaleMissing, passwordOf, startRadicale } from '../src/radicale.ts'

/**
 * The bundle on the oldest Node that can run it and on the newest: the daemon, an agent in a sandbox, services with threads,
 * and the commands, none of which may print a warning. Other Nodes: HATCHWAY_TEST_NODES=/path/to/node:/path/to/node
 */
const installed = ['node-22', 'node-26'].map(name =>
  join(import.meta.dirname, '..', 'src', 'nodes', 'node_modules', name, 'bin', 'node'),
)
const nodes = process.env.HATCHWAY_TEST_NODES?.split(':') ?? installed
const call = promisify(execFile)

const withoutBubblewrap = findProgram('bwrap') ? undefined : 'bwrap'
const withoutRadicale = isRadicaleMissing() ? 'radicale' : undefined

/** Written as a stranger would, in plain JavaScript: old Nodes read no other. */
const bell = `{
  name: 'bell', version: '1.0.0', settings: z.strictObject({}), input: {},
  migrations: [{ version: 1, sql: 'CREATE TABLE bell_rings (day TEXT PRIMARY KEY) STRICT' }],
  load: async () => ({ open: host => { host.sql('SELECT day FROM bell_rings').all(); return {} } }),
}`
const zod = JSON.stringify(pathToFileURL(join(projectRoot, 'node_modules', 'zod', 'index.js')))

const configFile = (home: string, settings: object) => {
  const file = join(home, 'hatchway.config.mjs')
  const text = `{ ...${JSON.stringify(settings)}, plugins: [${bell}] }`
  writeFileSync(file, `import { z } from ${zod}\nexport default ${text}\n`)
  return { HATCHWAY_CONFIG: file }
}

for (const node of nodes) {
  const missing = existsSync(node) ? undefined : node.replace(projectRoot, '')
  const attempt = (...needs: (string | undefined)[]) =>
    process.env.CI === 'true' || [missing, ...needs].every(need => need === undefined) ? test : test.skip

  describe(`on ${missing === undefined ? await versionOf(node) : `a Node (needs ${missing})`}`, () => {
    attempt(withoutBubblewrap)('the concierge is talked to, and commands print no warning', async () => {
      const heard: string[] = []
      const installation = await openInstallation({
        ...{ node, sandbox: 'bubblewrap', hear: text => heard.push(text) },
        environment: home => configFile(home, {}),
      })
      expect(await installation.say('every day at 9 remind me to water the plants')).toContain('plants')
      const env = { ...process.env, ...configFile(installation.home, {}) }
      const hatchway = (...args: string[]) =>
        call(node, [hatchwayProgram, ...args, '--data', installation.data], { env })
      const prints = async (said: string, ...args: string[]) => {
        const { stdout, stderr } = await hatchway(...args)
        expect({ args, stdout, stderr }).toEqual({ args, stdout: expect.stringContaining(said), stderr: '' })
      }
      await prints('Main', 'groups', 'list')
      await prints('water the plants', 'tasks', 'list')
      await prints('ok    Node: ', 'doctor')
      await prints('chat', 'runs', 'list')
      await prints('intact', 'audit', 'verify')
      const archive = join(installation.home, 'backup.tar.gz')
      await prints('written', 'backup', archive)
      // As `hatchway upgrade` does it: compressed with whatever this Node has.
      await prints('written', 'backup', join(installation.home, 'backup.tar'))
      const withZstd = hatchway('backup', join(installation.home, 'backup.tar.zst'))
      if (await has(node, "require('node:zlib').createZstdCompress")) await withZstd
      else await expect(withZstd).rejects.toThrow('Give the file a name that ends in .gz')
      const copy = join(installation.home, 'copy')
      await call(node, [hatchwayProgram, 'restore', archive, '--data', copy])
      const restored = await call(node, [hatchwayProgram, 'tasks', 'list', '--data', copy])
      expect(restored).toMatchObject({ stdout: expect.stringContaining('water the plants'), stderr: '' })
      expect(heard.join('')).not.toContain('Warning')

      const { stdout: services } = await hatchway('services', 'list')
      const canWatch = await has(node, "'setAuthorizer' in require('node:sqlite').DatabaseSync.prototype")
      const refusal = 'Plugins with tables need Node 24.10 or newer'
      if (canWatch) expect(services).not.toContain(refusal)
      else expect(services).toContain(refusal)
    })

    attempt(withoutBubblewrap, withoutRadicale)('an agent of one’s own, memories and calendars', async () => {
      const radicale = await startRadicale(['ana'])
      onTestFinished(() => radicale.stop())
      await radicale.makeCalendar('ana', 'family', 'Family')
      const installation = await openInstallation({
        ...{ node, sandbox: 'bubblewrap' },
        environment: home => ({
          ...configFile(home, {
            agents: { driver: 'command', command: ['/bin/sh', '-c', 'cat > /dev/null; echo here I am'] },
            calendars: { home: { url: radicale.url, username: 'ana', passwordVariable: 'ANAS_PASSWORD' } },
          }),
          ANAS_PASSWORD: passwordOf('ana'),
        }),
      })
      expect(await installation.say('are you there?')).toContain('here I am')
      const use = (tool: string, given: object) =>
        installation.hatchway(
          ...['post', '--group', 'main', '--type', 'call_service', '--wait', '--json', '--payload'],
          JSON.stringify({ tool, arguments: given }),
        )
      if (await has(node, "'backup' in require('node:sqlite')")) {
        await use('save_memory', { key: 'tea', content: 'Ana drinks green tea.' })
        expect(await use('recall_memories', { query: 'tea' })).toContain('green tea')
      } else {
        // Its SQLite cannot search texts either.
        expect(await installation.hatchway('services', 'list')).toContain('Memories need Node 22.16 or newer')
      }
      const day = { start_date: '2026-03-01', end_date: '2026-03-02' }
      const event = ['SUMMARY:Dentist', 'DTSTART:20260301T100000Z', 'DTEND:20260301T110000Z']
      const lines = [
        'BEGIN:VCALENDAR',
        'VERSION:2.0',
        'PRODID:-//test//EN',
        'BEGIN:VEVENT',
        'UID:1',
        ...event,
      ]
      await radicale.put(
        ...(['ana', 'family', '1.ics'] as const),
        [...lines, 'DTSTAMP:20260101T000000Z', 'END:VEVENT', 'END:VCALENDAR', ''].join('\r\n'),
      )
      expect(await use('list_calendar', day)).toContain('Dentist')
      // What is in the memories comes along.
      await installation.hatchway('backup', join(installation.home, 'backup.tar.gz'))
    })

    attempt()('a configuration in TypeScript is read, or people are told what to do', async () => {
      const folder = temporaryFolder('nodes')
      onTestFinished(() => rmSync(folder, { recursive: true }))
      mkdirSync(join(folder, 'data'))
      writeFileSync(join(folder, 'hatchway.config.ts'), "export default { timezone: 'UTC' as string }\n")
      const said = await call(node, [hatchwayProgram, 'config'], { cwd: folder }).catch(
        (error: { stderr: string }) => error,
      )
      const readsTypes = await has(node, 'process.features.typescript')
      if (readsTypes) expect(said).toMatchObject({ stderr: '' })
      else expect(said.stderr).toContain('Call it hatchway.config.mjs')
      await call(node, [hatchwayProgram, 'init', '--yes', '--force', '--data', 'data'], { cwd: folder })
      const written = readsTypes ? 'hatchway.config.mts' : 'hatchway.config.mjs'
      expect(existsSync(join(folder, 'hatchway.config.ts'))).toBe(false)
      expect(readFileSync(join(folder, written), 'utf8')).toContain('timezone')
    })
  })
}

test.for([
  ['hatchway', hatchwayProgram],
  ['hatchway-agent', join(projectRoot, 'packages', 'agent', 'bin', 'hatchway-agent.mjs')],
] as const)('%s says one sentence on a Node that is too old', async ([name, program]) => {
  const folder = temporaryFolder('old-node')
  onTestFinished(() => rmSync(folder, { recursive: true }))
  mkdirSync(join(folder, 'bin'))
  const copy = join(folder, 'bin', basename(program))
  copyFileSync(program, copy)
  const older = "Object.defineProperty(process, 'versions', { value: { node: '22.12.9' } })"
  const said = await call(process.execPath, [
    ...['--import', `data:text/javascript,${encodeURIComponent(older)}`, copy, 'status'],
  ]).catch((error: { code: number; stderr: string }) => error)
  const sentence = `^${name}: this is Node 22\\.12\\.9, but (Hatchway|it) needs Node 22\\.13 or newer\\. Install [^\\n]*\\n$`
  expect(said).toMatchObject({ code: 1, stderr: expect.stringMatching(new RegExp(sentence)) })
})

async function versionOf(node: string): Promise<string> {
  const { stdout } = await call(node, ['--version'])
  return `Node ${stdout.trim()}`
}

/** Whether an expression is true there. */
async function has(node: string, what: string): Promise<boolean> {
  const { stdout } = await call(node, ['--no-warnings', '-p', `Boolean(${what})`])
  return stdout.trim() === 'true'
}
