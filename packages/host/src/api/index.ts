/** The way in for people's programs: the command line today, the console tomorrow. */
export * from './answers.ts'
export {
  type ApprovalRuleAnswer,
  approvalRuleAnswer,
  approvalRulesAnswer,
  approvalsAnswer,
} from './approvals.ts'
export {
  type AuditEntryAnswer,
  auditAnswer,
  auditEntryAnswer,
  auditHeadAnswer,
  auditReportAnswer,
} from './audit-answers.ts'
export * from './chat-answers.ts'
export { type Client, type ConnectOptions, connect } from './client.ts'
export { begunDeployAnswer, type DeployAnswer, deployAnswer, deploysAnswer } from './deploys.ts'
export { ApiError } from './failure.ts'
export type { FeedEventAnswer } from './feed.ts'
export {
  type JobAnswer,
  type JobRunAnswer,
  jobRunsAnswer,
  jobsAnswer,
  type WholeJobRunAnswer,
  wholeJobRunAnswer,
} from './jobs.ts'
export { DaemonGone } from './over-socket.ts'
export { type RunAnswer, runAnswer, runsAnswer, type TranscriptAnswer, transcriptAnswer } from './runs.ts'
export { type RequestsAnswer, requestsAnswer, type ServicesAnswer, servicesAnswer } from './services.ts'
export { periodicAnswer } from './sessions.ts'
export type { OverviewAnswer } from './status.ts'
export { clearedTaintAnswer, type TaintsAnswer, taintsAnswer } from './taints.ts'
export { type OccurrenceAnswer, occurrencesAnswer, type UpcomingAnswer, upcomingAnswer } from './tasks.ts'
export { type UsageAnswer, usageAnswer } from './usage.ts'
export { syncAnswer, type WorktreesAnswer, worktreesAnswer } from './worktrees.ts'
