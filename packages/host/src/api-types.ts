/**
 * The entities of the API, as types and nothing else, for programs that are no part of the host: the console in the
 * browser. What is imported from here is gone when it is built.
 */

import type {
  OverviewAnswer,
  SessionsAnswer,
  SettingsAnswer,
  UpcomingAnswer,
  UsageAnswer,
  WholeCommandAnswer,
} from './api/answers.ts'

export type {
  ApprovalRuleAnswer as ApprovalRule,
  AuditEntryAnswer as AuditEntry,
  AuditReportAnswer as AuditReport,
  ChannelAddedAnswer as ChannelAdded,
  ChannelAnswer as ChannelState,
  CommandAnswer as Command,
  ErrorContentAnswer as RefusedFile,
  FeedEventAnswer as FeedEvent,
  FoundModelsAnswer as FoundModels,
  GroupAnswer as GroupDetails,
  LimitsAnswer as Limits,
  MeAnswer as Me,
  OccurrenceAnswer as Occurrence,
  OverviewAnswer as Overview,
  PairingAnswer as Pairing,
  RunAnswer as Run,
  TranscriptAnswer as Transcript,
  WholeCommandAnswer as CommandDetails,
} from './api/answers.ts'
export type {
  ApprovalAnswer as Approval,
  ChatAnswer as Room,
  ChatEventAnswer as ChatEvent,
  ChatStatusAnswer as ChatStatus,
  EntryAnswer as Entry,
  FileAnswer as Attachment,
  ListedApprovalAnswer as ListedApproval,
  ListedQuestionAnswer as ListedQuestion,
  QuestionAnswer as QuestionCard,
  WholeApprovalAnswer as WholeApproval,
} from './api/chat-answers.ts'
export type { ChangeKind as Topic } from './base/metrics/changes.ts'
export type { Role } from './config/roles.ts'
export type { WholeJobRunAnswer as JobRun } from './plugins/jobs/answers.ts'
export type { QuestionAnswer as GivenAnswer, Shown } from './store/entities/card.ts'
export type CommandStep = WholeCommandAnswer['steps'][number]
export type Setting = SettingsAnswer[number]
export type TrafficPoint = OverviewAnswer['traffic']['points'][number]
export type Upcoming = UpcomingAnswer[number]
export type Usage = UsageAnswer[number]
export type WebSession = SessionsAnswer[number]
