import { type Finding, report } from '../report.ts'
import { tortureClock } from './clock.ts'
import { createClosing } from './closing.ts'
import { tortureDeploys } from './deploy.ts'
import { tortureFullDisk } from './disk-full.ts'
import { tortureEngines } from './engines.ts'
import { tortureLocks } from './locked.ts'
import { type Options, type Part, parts, readOptions } from './options.ts'
import { type PartRun, tortureSystem } from './parts.ts'
import { torture } from './pipeline.ts'
import { describe, planOf } from './plan.ts'
import { tortureSlowDisk } from './slow-disk.ts'

const read = readOptions(process.argv.slice(2))
if ('say' in read) {
  console.log(read.say)
  process.exit(read.code)
}
const options: Options = read
console.log(`seed ${options.seed}: the same run again with --seed ${options.seed}`)
if (options.planOnly) {
  for (const part of options.parts) {
    if (part === 'pipeline') console.log(`pipeline: ${options.kills} kills`)
    else for (const round of planOf(part, options)) console.log(describe(round))
  }
  process.exit(0)
}

const closing = createClosing()
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, async () => {
    await closing.close()
    process.exit(signal === 'SIGINT' ? 130 : 143)
  })
}
const began = performance.now()
const progress = (line: string) =>
  console.error(`${String(Math.round((performance.now() - began) / 1000)).padStart(5)} s  ${line}`)

async function pipeline(): Promise<Finding[]> {
  const { seed, kills, inject, durability } = options
  const { posted, problems, ways } = await torture({ seed, kills, inject, durability, progress, closing })
  for (const problem of problems.slice(0, 50)) console.error(`  ${problem}`)
  const steps = Object.entries(ways).map(([way, times]) => `${way} ${times}`)
  progress(`pipeline: ${steps.join(', ')}`)
  return [
    {
      what: 'pipeline: killed at random, at a step, or with calls that fail',
      seen: `${kills} times`,
      bound: 'as asked',
      ok: true,
    },
    {
      what: 'pipeline: files lost, done twice, unanswered or left',
      seen: `${problems.length} of ${posted}`,
      bound: '0',
      ok: problems.length === 0,
    },
  ]
}

const run: Record<Exclude<Part, 'pipeline'>, (part: PartRun) => Promise<Finding[]>> = {
  system: tortureSystem,
  'disk-full': tortureFullDisk,
  'slow-disk': tortureSlowDisk,
  clock: tortureClock,
  locked: tortureLocks,
  engines: tortureEngines,
  deploy: tortureDeploys,
}

const findings: Finding[] = []
for (const part of parts) {
  if (!options.parts.includes(part)) continue
  const own = createClosing()
  closing.add(() => own.close())
  try {
    findings.push(
      ...(part === 'pipeline'
        ? await pipeline()
        : await run[part]({ options, rounds: planOf(part, options), closing: own, progress })),
    )
  } catch (error) {
    console.error(error)
    const seen = error instanceof Error ? error.message : String(error)
    findings.push({ what: part, seen, bound: 'to be carried out', ok: false })
  } finally {
    await own.close()
  }
}
const code = report(findings)
console.log(`The same run again: --seed ${options.seed}; one round of it: --only PART:ROUND (see --plan).`)
process.exit(code)
