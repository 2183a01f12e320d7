import type { Logger } from 'pino'
import type { Evidence } from '../../commands/service-tools.ts'
import { ServiceRefusal } from '../../services/define.ts'
import type { Checkout } from '../../supervisor/checkout.ts'
import type { NewDeploy } from './entity.ts'
import type { DeployInput } from './input.ts'
import type { DeployTable } from './table.ts'

/** of those that a deploy brings, on the card of whoever is asked */
const shownCommits = 10
/** of Git's list of changes */
const shownChanges = 20

export const named = (revision: string) => revision.slice(0, 12)

/** An abbreviated one will do, as git prints them. */
const isRevision = (asked: string, revision: string) =>
  asked === revision || (/^[0-9a-f]{7,}$/i.test(asked) && revision.startsWith(asked.toLowerCase()))

/** Which revision runs, and which one a deploy would bring. */
export interface Revisions {
  /** what would be deployed, for whoever is asked whether it may */
  evidence(): Promise<Evidence>
  /** checks out what is to be deployed; refuses what cannot be */
  prepare(asked: DeployInput): Promise<Pick<NewDeploy, 'from' | 'to' | 'branch'>>
}

export function createRevisions(options: {
  directory: string
  checkout: Checkout
  /** what this process runs */
  running: Promise<string>
  /** why this host cannot be deployed, if so */
  problem: string | undefined
  table: Pick<DeployTable, 'list'>
  log: Logger
}): Revisions {
  const { directory, checkout, running, problem, table, log } = options

  /** What runs, and that nothing speaks against another revision; before anything is done. */
  const examine = async (): Promise<string> => {
    if (problem !== undefined) throw new ServiceRefusal('unavailable', problem)
    const from = await running.catch(error => {
      throw new ServiceRefusal('unavailable', `${directory} is no git checkout: ${error.message}`)
    })
    const changes = await checkout.changes()
    if (changes.length > 0) {
      const left = changes.length - shownChanges
      const more = left > 0 ? `\n… and ${left} more` : ''
      throw new ServiceRefusal(
        'dirty_tree',
        `Tracked files have changes that are not committed:\n${changes.slice(0, shownChanges).join('\n')}${more}`,
      )
    }
    return from
  }

  /** After a roll-back no branch is checked out. Once the branch has gone on, it is taken up again. */
  const branchAfterRollBack = async (): Promise<{ branch: string; tip: string } | undefined> => {
    if ((await checkout.branch()) !== undefined) return undefined
    const head = await checkout.head()
    const last = table.list(20).find(({ status, from }) => status === 'rolled_back' && from === head)
    if (!last?.branch) return undefined
    const tip = await checkout.tip(last.branch)
    if (tip === undefined || tip === last.to || tip === last.from) return undefined
    return { branch: last.branch, tip }
  }

  const leaveRolledBack = async () => {
    const next = await branchAfterRollBack()
    if (!next) return
    await checkout.switchTo(next.branch)
    log.info({ branch: next.branch, revision: next.tip }, 'the branch is checked out again after a roll-back')
  }

  return {
    async evidence() {
      const from = await examine()
      const revision = (await branchAfterRollBack())?.tip ?? (await checkout.head())
      return { fields: { running: from, revision, ...(await checkout.log(from, revision, shownCommits)) } }
    },
    async prepare({ head, rebuild, approved }) {
      const from = await examine()
      await leaveRolledBack()
      const to = await checkout.head()
      if (approved && approved.revision !== to) {
        throw new ServiceRefusal(
          'conflict',
          `${named(approved.revision)} was approved, and ${named(to)} is checked out by now. Ask again.`,
        )
      }
      if (head !== undefined && !isRevision(head, to)) {
        throw new ServiceRefusal(
          'conflict',
          `What is checked out is ${to}, not ${head}. Look before asking again.`,
        )
      }
      if (to === from && !rebuild) {
        throw new ServiceRefusal(
          'wrong_state',
          `There is nothing to deploy: ${named(to)} is what runs. With rebuild it is built and started again.`,
        )
      }
      return { from, to, branch: (await checkout.branch()) ?? null }
    },
  }
}
