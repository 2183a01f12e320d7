import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { openProject, patiently, program } from '../../../host/src/plugins/deploy/testing/project.ts'
import type { Finding } from '../report.ts'
import { hasProgram } from './available.ts'
import { createTally, explain, findingsOf, type PartRun, untried } from './parts.ts'
import { describe, type Fault, type Round } from './plan.ts'

type Deploy = Extract<Fault, { kind: 'deploy' }>
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
    const { fault } = round
    if (fault.kind !== 'deploy') continue
    run.progress(describe(round))
    tally.did(round)
    try {
      const code = await deployOnce(project, round, fault, good, tally.saw)
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
  fault: Deploy,
  good: Set<string>,
  saw: (problem: string) => void,
): Promise<string> {
  const writeFault = () => writeFileSync(join(project.repo, 'fault'), fault.step ?? '')
  const before = await project.up()
  if (fault.step !== undefined && fault.step !== 'deploy_up') {
    // The daemon that is killed is one that was started with this.
    writeFault()
    process.kill(before, 'SIGKILL')
    await patiently('another one runs', async () => {
      const pid = await project.pid()
      return pid !== undefined && pid !== before
    })
  }
  const old = project.git('rev-parse', 'HEAD')
  const revision = project.commit(
    `revision ${number}`,
    fault.revision === 'good' ? program.good : program.broken,
  )
  if (fault.revision === 'good') good.add(revision)
  if (fault.step === 'deploy_up') writeFault()
  const id = `deploy-${number}`
  project.ask(id, {})
  if (fault.step === undefined) {
    await sleep(fault.ms)
    if (fault.victim === 'daemon') {
      const pid = await project.pid()
      if (pid !== undefined) process.kill(pid, 'SIGKILL')
    }
    if (fault.victim === 'supervisor') {
      await project.end('SIGKILL')
      project.supervise()
    }
  }
  const { ok, error } = await project.answer(id)
  project.forgetAnswer(id)
  await project.up()
  const head = project.git('rev-parse', 'HEAD')
  const what = `round ${number} (${fault.revision}, ${fault.victim} killed, ${fault.step ?? `after ${fault.ms} ms`})`
  if (!good.has(head)) saw(`${what}: a broken revision is checked out`)
  if (head !== old && head !== revision) saw(`${what}: neither the old nor the new revision is checked out`)
  if (ok && head !== revision) saw(`${what}: it is answered as deployed, and the old one runs`)
  if (!ok && !failures.includes(error?.code ?? '')) saw(`${what}: answered with ${error?.code}`)
  if (fault.victim === 'nobody' && ok !== (fault.revision === 'good'))
    saw(`${what}: nobody was killed, and it is answered with ${error?.code ?? 'deployed'}`)
  // Long enough for an answer that would come twice.
  await sleep(500)
  if (project.isAnswered(id)) saw(`${what}: it was answered a second time`)
  return ok ? 'deployed' : (error?.code ?? 'unknown')
}
