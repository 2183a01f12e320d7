import { chmodSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { RunStart } from '@hatchway/protocol'
import { findProgram } from '../../../host/src/base/programs.ts'
import { contentFor } from '../../../host/src/runs/model-gateway/content.ts'
import { createBubblewrap } from '../../../host/src/sandboxes/bubblewrap.ts'
import { inside, mountsFor } from '../../../host/src/sandboxes/mounts.ts'
import type { Live } from '../daemon/in-process.ts'
import { projectRoot } from '../paths.ts'
import type { ModelApiRequest } from './model-apis.ts'

/** What the host's gateway would say to this; undefined: nothing. */
export function refusedByGateway({ api, body }: ModelApiRequest): string | undefined {
  const judged = contentFor(Buffer.from(JSON.stringify(body)), api)
  return 'problem' in judged ? judged.problem : undefined
}

export const hasBubblewrap = findProgram('bwrap') !== undefined

/** The runner in bubblewrap, with the mounts of a real run and without a network. The socket is `model.sock` in its folder. */
export async function startInBubblewrap({ layout, config }: Live, start: RunStart, modelDirectory: string) {
  // Whom the host gave the hatch to.
  const { uid, gid } = statSync(join(layout.ipc, start.group.folder, 'input'))
  chmodSync(modelDirectory, 0o755)
  chmodSync(join(modelDirectory, 'model.sock'), 0o666)
  const mounted = mountsFor({
    layout,
    group: start.group,
    owner: { uid, gid },
    bundle: join(projectRoot, 'packages', 'agent', 'dist', 'agent.mjs'),
    node: process.execPath,
    modelDirectory,
    rules: { allowedFile: undefined, project: projectRoot, data: config.data },
  })
  if (!mounted.ok) throw new Error(mounted.problems.join(' '))
  const started = await createBubblewrap().start({
    installation: 'test',
    runId: start.run_id,
    group: start.group,
    command: [inside.node, inside.bundle, 'run'],
    workingDirectory: inside.group,
    environment: {
      PATH: '/usr/local/bin:/usr/bin:/bin',
      HOME: inside.home,
      HATCHWAY_MAIN: start.group.main ? '1' : '0',
      ANTHROPIC_UNIX_SOCKET: inside.modelSocket,
      ANTHROPIC_API_KEY: 'kept-by-the-host',
    },
    mounts: mounted.mounts,
    image: undefined,
    user: { uid, gid },
    limits: { memoryMb: 1024, processes: 128, cpus: 2, temporaryMb: 64 },
  })
  started.stdin.end(JSON.stringify(start))
  let isOver = false
  const exited = started.exited.then(({ code }) => {
    isOver = true
    return code
  })
  return {
    stdout: started.stdout,
    stderr: started.stderr,
    exited,
    kill(signal: NodeJS.Signals) {
      if (!isOver) process.kill(Number(started.name), signal)
    },
  }
}
