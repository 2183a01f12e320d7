import type { ComponentType } from 'react'
import { ApprovalsPage } from '../pages/approvals/page.tsx'
import { AuditPage } from '../pages/audit/page.tsx'
import { ChannelsPage } from '../pages/channels/page.tsx'
import { ChatPage } from '../pages/chat/page.tsx'
import { ErrorsPage } from '../pages/errors/page.tsx'
import { GroupsPage } from '../pages/groups/page.tsx'
import { ModelsPage } from '../pages/models/page.tsx'
import { OverviewPage } from '../pages/overview/page.tsx'
import { RunsPage } from '../pages/runs/page.tsx'
import { SettingsPage } from '../pages/settings/page.tsx'
import { TasksPage } from '../pages/tasks/page.tsx'
import { TrafficPage } from '../pages/traffic/page.tsx'
import type { IconName } from '../parts/icon.tsx'

export interface PageOfConsole {
  id: IconName
  title: string
  /** after `g` */
  key: string
  page: ComponentType
  /** on a phone it stands in the bar, and not behind «More» */
  isFirst?: boolean
}

export const pages: readonly PageOfConsole[] = [
  { id: 'overview', title: 'Overview', key: 'o', page: OverviewPage, isFirst: true },
  { id: 'chat', title: 'Chat', key: 'c', page: ChatPage, isFirst: true },
  { id: 'traffic', title: 'Traffic', key: 't', page: TrafficPage, isFirst: true },
  { id: 'tasks', title: 'Tasks', key: 'k', page: TasksPage, isFirst: true },
  { id: 'groups', title: 'Groups', key: 'g', page: GroupsPage },
  { id: 'channels', title: 'Channels', key: 'n', page: ChannelsPage },
  { id: 'models', title: 'Models', key: 'm', page: ModelsPage },
  { id: 'approvals', title: 'Approvals', key: 'a', page: ApprovalsPage },
  { id: 'errors', title: 'Errors', key: 'e', page: ErrorsPage },
  { id: 'audit', title: 'Audit', key: 'u', page: AuditPage },
  { id: 'runs', title: 'Runs', key: 'r', page: RunsPage },
  { id: 'settings', title: 'Settings', key: 's', page: SettingsPage },
]
