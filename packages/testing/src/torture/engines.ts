import { execFileSync } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { findProgram } from '../../../host/src/base/programs.ts'
import type { Finding } from '../report.ts'
import { type EngineRig, startDockerEngine } from '../sandboxes/engines.ts'
import { isRoot } from './available.ts'
import { keepBusy } from './kills.ts'
import { inOneScene, openScene, type PartRun, untried } from './parts.ts'
import type { Fault } from './plan.ts'
import { answersPeople } from './probe.ts'
import { createRestartableDaemon } from './restartable-daemon.ts'

/** In a view of the file system that is its own, so that a program can be taken from it and from nobody else. */
const ownView = ['unshare', '--mount', '--propagation', 'private']
const inView = (pid: number | undefined, ...command: string[]) =>
  void execFileSync('nsenter', ['--target', String(pid), '--mount', ...command])

/** What runs agents disappears in the middle of sessions, and comes back: bubblewrap, and a Docker engine of our own. */
export async function tortureEngines(run: PartRun): Promise<Finding[]> {
  const bwrap = findProgram('bwrap')
  if (!isRoot || !bwrap || !findProgram('unshare') || !findProgram('nsenter'))
    return untried('engines', 'needs root, bubblewrap and util-linux')
  const docker = await startDockerEngine()
  if (docker) run.closing.add(() => docker.stop())
  const { DOCKER_HOST = '', DOCKER_CONFIG = '' } = docker?.options.environment ?? {}
  const scene = await openScene(
    run,
    docker ? { bob: { sandbox: 'docker' }, env: { DOCKER_HOST, DOCKER_CONFIG } } : {},
  )
  const { testbed, traffic } = scene
  const daemon = createRestartableDaemon(testbed, { under: ownView })

  /** takes it away, and what gives it back */
  const take = async ({
    engine,
    how,
  }: Extract<Fault, { kind: 'engine' }>): Promise<() => Promise<void> | void> => {
    if (engine === 'bwrap') {
      inView(daemon.pid(), 'mount', '--bind', '/dev/null', bwrap)
      return () => inView(daemon.pid(), 'umount', bwrap)
    }
    if (how === 'frozen') {
      docker?.process?.kill('SIGSTOP')
      return () => void docker?.process?.kill('SIGCONT')
    }
    if (how === 'killed') docker?.process?.kill('SIGKILL')
    return () => docker?.restart()
  }
  const known = docker
    ? run.rounds
    : run.rounds.filter(({ fault }) => fault.kind === 'engine' && fault.engine === 'bwrap')
  const findings = await inOneScene(
    'engines',
    { ...run, rounds: known },
    scene,
    async (round, tally) => {
      const { fault, seed } = round
      if (fault.kind !== 'engine') return
      await daemon.up()
      const folder = fault.engine === 'bwrap' ? 'ann' : 'bob'
      // Somewhere in the middle of a session, or of its start.
      traffic.say(folder)
      traffic.say(folder)
      await sleep(fault.ms / 3)
      const giveBack = await take(fault)
      const until = performance.now() + fault.ms
      await keepBusy(traffic, { seed }, () => daemon.isGone() || performance.now() > until)
      await giveBack()
      await traffic.settle()
      if (daemon.isGone()) tally.saw(`the daemon ended: ${daemon.output()}`)
      const problem = await answersPeople(scene, folder)
      if (problem !== undefined) tally.saw(`${problem}, after ${fault.engine} was there again`)
    },
    { before: daemon.stop },
  )
  return [
    ...findings,
    ...(docker
      ? containersLeft(docker)
      : untried('engines', 'Docker is not installed: no engine disappeared')),
  ]
}

function containersLeft({ options }: EngineRig): Finding[] {
  const left = execFileSync('docker', ['ps', '--all', '--quiet'], {
    env: options.environment,
    encoding: 'utf8',
  })
  const count = left.split('\n').filter(Boolean).length
  return [{ what: 'engines: containers left', seen: String(count), bound: '0', ok: count === 0 }]
}
