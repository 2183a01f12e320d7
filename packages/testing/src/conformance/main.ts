import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { projectRoot } from '../paths.ts'
import { isRadicaleMissing, startRadicale } from '../radicale.ts'
import { type Finding, report } from '../report.ts'
import { startDockerEngine } from '../sandboxes/engines.ts'
import { columns } from './dialects/index.ts'
import { documentOf } from './document.ts'
import { features } from './features.ts'
import { buildImages } from './images.ts'
import { readOptions } from './options.ts'
import { type Tried, tryColumn } from './try-column.ts'

const document = join(projectRoot, 'docs', 'conformance.md')
const tell = (line: string) => process.stderr.write(`${line}\n`)

const options = readOptions(process.argv.slice(2))
if ('print' in options) {
  console.log(options.print)
  process.exit(options.code)
}

const closing: (() => Promise<void>)[] = []
const atEnd = (close: () => Promise<void>) => void closing.push(close)
const tidy = async () => {
  for (const close of closing.splice(0).reverse())
    await close().catch(error => tell(`something was not taken down: ${error}`))
}
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.once(signal, () => {
    tell('stopping')
    void tidy().finally(() => process.exit(1))
  })

const findings: Finding[] = []
const tried: Tried[] = []
try {
  const docker = await startDockerEngine()
  if (docker) {
    atEnd(() => docker.stop())
    const radicale = isRadicaleMissing() ? undefined : await startRadicale(['ann'])
    if (radicale) {
      atEnd(() => radicale.stop())
      await radicale.makeCalendar('ann', 'work')
    }
    tell('images are made')
    await buildImages(options.columns, docker.options.environment)
    const settings = {
      docker: docker.options.environment ?? {},
      radicale,
      atEnd,
      tell: options.verbose ? tell : () => {},
    }
    const one = async (column: (typeof options.columns)[number]) => {
      const begun = performance.now()
      const result = await tryColumn(column, settings)
      tell(`${column.title}: done after ${Math.round((performance.now() - begun) / 1000)} s`)
      tried.push(result)
    }
    tell(`${options.columns.map(({ title }) => title).join(', ')}: beside each other`)
    await Promise.all(options.columns.map(one))
  }
  findings.push(...options.columns.map(column => findingOf(column.id, docker !== undefined)))
} finally {
  await tidy()
}

function findingOf(id: string, hasDocker: boolean): Finding {
  const column = columns.find(candidate => candidate.id === id)
  const about = { what: column?.title ?? id, bound: `all ${column?.has.length ?? 0} features` }
  if (!hasDocker) return { ...about, seen: 'needs Docker, and to be root', ok: undefined }
  const result = tried.find(({ column }) => column.id === id)
  const good = result?.judgements.filter(({ ok }) => ok) ?? []
  const ok = good.length === column?.has.length && result?.problems.length === 0
  return { ...about, seen: `${good.length} work`, ok }
}

for (const { column, judgements, problems } of tried) {
  for (const { feature, ok, seen } of judgements)
    if (!ok)
      findings.push({ what: `${column.title}: ${features[feature].title}`, seen, bound: 'works', ok: false })
  for (const problem of problems)
    findings.push({
      what: column.title,
      seen: problem.slice(0, 300),
      bound: 'no problem on the way',
      ok: false,
    })
}

const isWhole = tried.length === columns.length
if (isWhole) findings.push(written())
else if (tried.length > 0) tell('docs/conformance.md is written by a run of all of them only.')
process.exitCode = report(findings)

function written(): Finding {
  const text = documentOf(
    (id, feature) =>
      tried
        .find(({ column }) => column.id === id)
        ?.judgements.find(judgement => judgement.feature === feature)?.ok,
  )
  const about = { what: 'docs/conformance.md', bound: 'as this run has seen it' }
  let before = ''
  try {
    before = readFileSync(document, 'utf8')
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
  }
  if (before === text) return { ...about, seen: 'the same', ok: true }
  if (options && 'check' in options && options.check) return { ...about, seen: 'differs', ok: false }
  writeFileSync(document, text)
  return { ...about, seen: 'written', ok: true }
}
