import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { layoutOf } from '../../../host/src/base/layout.ts'
import { markedProcesses } from '../../../host/src/base/processes.ts'
import { ask } from '../../../host/src/base/programs.ts'

/** What a group that is over must not have left outside of its own directories. */
export async function leftoversOf(options: {
  data: string
  installation: string
  /** the daemon's own temporary folder */
  temporary: string
  docker: NodeJS.ProcessEnv | undefined
}): Promise<string[]> {
  const { data, installation, temporary, docker } = options
  const layout = layoutOf(data)
  const look = async (): Promise<string[]> => {
    const found: string[] = []
    for (const sandbox of ['bubblewrap', 'docker'])
      for (const { pid } of markedProcesses(sandbox, installation)) found.push(`process ${pid} of ${sandbox}`)
    for (const line of readFileSync('/proc/self/mountinfo', 'utf8').split('\n'))
      if (line.includes(data)) found.push(`mount ${line}`)
    for (const tree of ['memory', 'pids', 'cpu', 'unified', '.']) {
      const home = join('/sys/fs/cgroup', tree, 'hatchway')
      if (!existsSync(home)) continue
      for (const name of readdirSync(home))
        if (name.startsWith(installation)) found.push(`cgroup ${tree}/${name}`)
    }
    if (docker) {
      const filter = ['--filter', `label=hatchway.installation=${installation}`]
      const { stdout } = await ask('docker', ['ps', '--all', '--quiet', ...filter], {
        timeoutMs: 10_000,
        environment: docker,
      })
      for (const id of stdout.split('\n').filter(Boolean)) found.push(`container ${id}`)
      const volumes = await ask('docker', ['volume', 'ls', '--quiet'], {
        timeoutMs: 10_000,
        environment: docker,
      })
      for (const id of volumes.stdout.split('\n').filter(Boolean)) found.push(`volume ${id}`)
    }
    for (const bucket of readdirSync(layout.spool))
      for (const name of readdirSync(join(layout.spool, bucket))) found.push(`spool/${bucket}/${name}`)
    const runs = join(layout.state, 'runs')
    if (existsSync(runs)) for (const name of readdirSync(runs)) found.push(`state/runs/${name}`)
    for (const name of readdirSync(temporary)) found.push(`temporary ${name}`)
    return found
  }
  // The kernel, and whoever clears up, needs a moment.
  for (let n = 0; n < 40; n++) {
    if ((await look()).length === 0) return []
    await sleep(500)
  }
  return look()
}
