import { setTimeout as sleep } from 'node:timers/promises'
import { findProgram } from '../../../host/src/base/programs.ts'
import { type Finding, report } from '../report.ts'
import { type EngineRig, startDockerEngine } from '../sandboxes/engines.ts'
import { runAttacks } from './attack-run.ts'
import { readOptions } from './options.ts'

/** The hostile agent in every sandbox there is, one after the other, and a table of what was seen from outside. */
const options = readOptions(process.argv.slice(2))
if ('text' in options) {
  console.log(options.text)
  process.exit(options.code)
}
const { seed, sandboxes, seconds, waves } = options
console.log(`seed ${seed}: the same attacks again with --seed ${seed}`)

const closes: (() => Promise<void>)[] = []
const close = async () => {
  for (const end of closes.splice(0).toReversed()) await end()
}
for (const name of ['SIGINT', 'SIGTERM'] as const)
  process.once(name, () => {
    console.error('Ending.')
    void close().finally(() => process.exit(1))
  })

const begun = Date.now()
const progress = (text: string) =>
  console.error(`${String(Math.round((Date.now() - begun) / 1000)).padStart(4)} s  ${text}`)

const findings: Finding[] = []
try {
  for (const sandbox of sandboxes) {
    let docker: EngineRig | undefined
    if (sandbox === 'docker') {
      docker = await startDockerEngine()
      const engine = docker
      if (engine) closes.push(() => engine.stop())
    }
    const missing =
      sandbox === 'docker'
        ? docker === undefined && 'needs root, and a Docker engine to start'
        : findProgram('bwrap') === undefined && 'needs bwrap'
    if (missing) {
      findings.push({ what: sandbox, seen: missing, bound: 'to be tried', ok: undefined })
      continue
    }
    findings.push(
      ...(await runAttacks({
        sandbox,
        seed,
        waves,
        ...{ samples: 3000, quietMs: 8000, waveSeconds: 3 },
        seconds: seconds / sandboxes.length,
        docker: docker?.options.environment,
        progress: text => progress(`${sandbox}: ${text}`),
        atEnd: end => void closes.push(end),
      })),
    )
    await close()
  }
} finally {
  await close()
}
const code = report(findings)
// What was printed is out before the process ends.
await sleep(50)
process.exit(code)
