/**
 * `npm test`: the whole suite, or what the arguments name, as `vitest run` takes it.
 *
 * Four workers share the cores, so tests wait for each other's daemons and browsers. With CI=true, the few files that failed
 * are run once more, one at a time. If they fail again, so does the run. If they pass, they are named: either the test needs
 * luck with timing, or the program does, and somebody has to find out which.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'

/** More than these are no accident. */
const mostAgain = 5
const root = fileURLToPath(new URL('..', import.meta.url))
const summarySchema = z.object({
  testResults: z.array(
    z.object({
      name: z.string(),
      status: z.string(),
      assertionResults: z.array(z.object({ status: z.string() })),
    }),
  ),
})
const listSchema = z.array(z.object({ file: z.string() }))

const vitest = (command: string, ...options: string[]): number =>
  spawnSync(process.execPath, [join(root, 'node_modules', 'vitest', 'vitest.mjs'), command, ...options], {
    cwd: root,
    stdio: 'inherit',
  }).status ?? 1

const read = <T>(schema: z.ZodType<T>, file: string): T =>
  schema.parse(JSON.parse(readFileSync(file, 'utf8')))

const ended = new Set(['passed', 'skipped', 'todo'])
const isPassed = ({ status, assertionResults }: z.infer<typeof summarySchema>['testResults'][number]) =>
  status === 'passed' && assertionResults.every(test => ended.has(test.status))

/** Those that failed, and those with tests that have no result: the worker that ran them died. */
function failedFiles(folder: string, summary: string, asked: readonly string[]): string[] {
  const listed = join(folder, 'listed.json')
  vitest('list', ...asked, '--filesOnly', `--json=${listed}`)
  const passed = new Set(
    read(summarySchema, summary)
      .testResults.filter(isPassed)
      .map(({ name }) => name),
  )
  const all = new Set(read(listSchema, listed).map(({ file }) => file))
  return [...all].filter(file => !passed.has(file)).map(file => relative(root, file))
}

function inCi(asked: readonly string[]): number {
  const folder = mkdtempSync(join(tmpdir(), 'hatchway-suite-'))
  try {
    const summary = join(folder, 'summary.json')
    const code = vitest(
      'run',
      ...asked,
      '--reporter=default',
      '--reporter=json',
      `--outputFile.json=${summary}`,
    )
    if (code === 0) return 0
    const failed = failedFiles(folder, summary, asked)
    if (failed.length === 0 || failed.length > mostAgain) return code
    console.log(`\nFailed beside other tests, and run again alone:\n${list(failed)}\n`)
    const again = vitest('run', ...failed, '--maxWorkers=1')
    if (again === 0) console.log(`\nFailed beside other tests, and passed alone:\n${list(failed)}`)
    return again
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const list = (files: readonly string[]): string => files.map(file => `  ${file}`).join('\n')

const asked = process.argv.slice(2)
process.exitCode = process.env.CI === 'true' ? inCi(asked) : vitest('run', ...asked)
