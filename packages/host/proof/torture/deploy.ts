import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { openProject, patiently, program } from '../deploy/project.ts'
import type { Finding } from '../report.ts'
import { hasProgram } from './has.ts'
import { createTally, explain, findingsOf, type PartRun, untried } from './parts.ts'
import { describe, type Hurt, type Round } from './plan.ts'

type Deploy = Extract<Hurt, { kind: 'deploy' }>
type Project = Awaited<ReturnType<typeof openProject>>

/** What may be answered where somebody was killed: not done, or gone back, or found done by the next one. */
const failures = ['interrupted', 'rolled_back', 'wrong_state', 'conflict', 'service_failed']

/** Good and broken revisions, deployed while daemon or supervisor are killed: a good one runs in the end. */
export async function tortureDeploys(run: PartRun): Promise<Finding[]> {
  if (!hasProgram('git')) return untried('deploy', 'git is not installed')
  const tally = createTally()
  const project = await openProject(
    { onTestFinished: close => run.closing.add(() => close({ task: {} })) },
    { healthMs: 20_000 },
  )
  const good = new Set([project.first])
  const codes = new Map<string, number>()
  let isRunning = true
  for (const round of run.rounds) {
    const { hurt } = round
    if (hurt.kind !== 'deploy') continue
    run.progress(describe(round))
    tally.did(round)
    try {
      const code = await deployOnce(project, round, hurt, good, tally.saw)
      run.progress(`deploy:${round.number} is answered: ${code}`)
      codes.set(code, (codes.get(code) ?? 0) + 1)
    } catch (error) {
      // Nothing runs any more, so there is nothing that the next round could be about.
      tally.saw(`round ${round.number}: ${error instanceof Error ? error.message : String(error)}`)
      console.error(project.output().slice(-2000))
      isRunning = false
      break
    }
  }
  const ended = ['done', 'failed', 'rolled_back']
  if (isRunning) {
    const unended = (await project.deploys()).filter(({ status }) => !ended.includes(status))
    for (const { id, status } of unended) tally.saw(`deploy ${id} is ${status} for ever`)
  }
  const answers = [...codes].map(([code, count]) => `${count} × ${code}`).join(', ')
  const properties = [
    { name: 'a good revision runs, answered once', count: answers || 'none', problems: tally.problems },
  ]
  explain('deploy', properties)
  return [...tally.findings('deploy'), ...findingsOf('deploy', properties)]
}

async function deployOnce(
  project: Project,
  { number }: Round,
  hurt: Deploy,
  good: Set<string>,
  saw: (problem: string) => void,
): Promise<string> {
  const fault = () => writeFileSync(join(project.repo, 'fault'), hurt.step ?? '')
  const before = await project.up()
  if (hurt.step !== undefined && hurt.step !== 'deploy_up') {
    // The daemon that is killed is one that was started with this.
    fault()
    process.kill(before, 'SIGKILL')
    await patiently('another one runs', async () => {
      const pid = await project.pid()
      return pid !== undefined && pid !== before
    })
  }
  const old = project.git('rev-parse', 'HEAD')
  const revision = project.commit(
    `revision ${number}`,
    hurt.revision === 'good' ? program.good : program.broken,
  )
  if (hurt.revision === 'good') good.add(revision)
  if (hurt.step === 'deploy_up') fault()
  const id = `deploy-${number}`
  project.ask(id, {})
  if (hurt.step === undefined) {
    await sleep(hurt.ms)
    if (hurt.victim === 'daemon') {
      const pid = await project.pid()
      if (pid !== undefined) process.kill(pid, 'SIGKILL')
    }
    if (hurt.victim === 'supervisor') {
      await project.end('SIGKILL')
      project.supervise()
    }
  }
  const { ok, error } = await project.answer(id)
  project.forgetAnswer(id)
  await project.up()
  const head = project.git('rev-parse', 'HEAD')
  const what = `round ${number} (${hurt.revision}, ${hurt.victim} killed, ${hurt.step ?? `after ${hurt.ms} ms`})`
  if (!good.has(head)) saw(`${what}: a broken revision is checked out`)
  if (head !== old && head !== revision) saw(`${what}: neither the old nor the new revision is checked out`)
  if (ok && head !== revision) saw(`${what}: it is answered as deployed, and the old one runs`)
  if (!ok && !failures.includes(error?.code ?? '')) saw(`${what}: answered with ${error?.code}`)
  if (hurt.victim === 'nobody' && ok !== (hurt.revision === 'good'))
    saw(`${what}: nobody was killed, and it is answered with ${error?.code ?? 'deployed'}`)
  // Long enough for an answer that would come twice.
  await sleep(500)
  if (project.isAnswered(id)) saw(`${what}: it was answered a second time`)
  return ok ? 'deployed' : (error?.code ?? 'unknown')
}
