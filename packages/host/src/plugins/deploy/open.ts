import { dirname } from 'node:path'
import { bindRoutes } from '../../api/route.ts'
import type { BuiltInHost, Contributions } from '../../plugin-api/types.ts'
import { handoverFile } from '../../supervisor/handover.ts'
import { isFor } from '../../supervisor/supervised.ts'
import { deployCommand } from './command.ts'
import { createDeploys } from './deploys.ts'
import { deployRoutes } from './routes.ts'
import type { DeploySettings } from './settings.ts'
import { createDeployTable } from './table.ts'

/** so many of the newest tell whether anything has changed */
const watched = 5

export function open(host: BuiltInHost<DeploySettings>): Contributions {
  const { supervision, log } = host
  const table = createDeployTable(host)
  const handover = handoverFile(dirname(host.layout.state))
  const isSupervised = supervision !== undefined && isFor(supervision.supervisor, handover)
  if (supervision && !isSupervised) log.warn('the supervisor looks after another data directory')
  const deploys = host.isDaemon
    ? createDeploys({
        host,
        table,
        handover,
        isSupervised,
        restart: code => supervision?.restart(code),
      })
    : undefined
  return {
    commands: [deployCommand(deploys)],
    work: deploys?.work ? [deploys.work] : [],
    routes: bindRoutes(deployRoutes, { table, deploys }),
    signs: () => ({
      deploys: table
        .list(watched)
        .map(({ id, status }) => `${id} ${status}`)
        .join(),
    }),
    waiting: () => ({ deploys: table.open().length }),
    ready: deploys?.up,
    failed: deploys?.giveUp,
    stop: deploys?.stop,
  }
}
