import { type Client, type ConnectOptions, connect as connectTo } from './client/client.ts'
import type { Config } from './config.ts'

/** The way in for people's programs: the command line today, the console tomorrow. */
export * from './api/answers.ts'
export {
  type ApprovalRuleAnswer,
  approvalRuleAnswer,
  approvalRulesAnswer,
  approvalsAnswer,
} from './api/approvals.ts'
export {
  type AuditEntryAnswer,
  auditAnswer,
  auditEntryAnswer,
  auditHeadAnswer,
  auditReportAnswer,
} from './api/audit-answers.ts'
export * from './api/chat-answers.ts'
export { begunDeployAnswer, type DeployAnswer, deployAnswer, deploysAnswer } from './api/deploys.ts'
export { ApiError } from './api/failure.ts'
export type { FeedEventAnswer } from './api/feed.ts'
export {
  type JobAnswer,
  type JobRunAnswer,
  jobRunsAnswer,
  jobsAnswer,
  type WholeJobRunAnswer,
  wholeJobRunAnswer,
} from './api/jobs.ts'
export { type RunAnswer, runAnswer, runsAnswer, type TranscriptAnswer, transcriptAnswer } from './api/runs.ts'
export { type RequestsAnswer, requestsAnswer, type ServicesAnswer, servicesAnswer } from './api/services.ts'
export { periodicAnswer } from './api/sessions.ts'
export type { OverviewAnswer } from './api/status.ts'
export { clearedTaintAnswer, type TaintsAnswer, taintsAnswer } from './api/taints.ts'
export { type OccurrenceAnswer, occurrencesAnswer, type UpcomingAnswer, upcomingAnswer } from './api/tasks.ts'
export { type UsageAnswer, usageAnswer } from './api/usage.ts'
export { syncAnswer, type WorktreesAnswer, worktreesAnswer } from './api/worktrees.ts'
export { DaemonGone } from './client/over-socket.ts'
export type { Client, ConnectOptions }

/** To the daemon, or, where none runs, to a host opened in this process for as long as it takes. */
export const connect = (config: Config, options: ConnectOptions = {}): Promise<Client> =>
  connectTo(config, options, async local => {
    const { openLocal } = await import('./assemble/local.ts')
    return openLocal(local)
  })
