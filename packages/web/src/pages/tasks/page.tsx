import type { GroupDetails } from '@hatchway/host/api-types'
import type { Task } from '@hatchway/protocol'
import { useRef, useState } from 'react'
import { pathOf } from '../../host/ask.ts'
import { useAnswer } from '../../live/use-answer.ts'
import { GroupSelect, SearchBox, Select } from '../../parts/filters.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Badge, Columns, Empty, ErrorText, Loading, PageFrame, Panel } from '../../parts/parts.tsx'
import { shortly, visible } from '../../parts/text.ts'
import { Time } from '../../parts/time.tsx'
import { useMay } from '../../shell/me.ts'
import { hrefOf, replace, useRoute } from '../../shell/route.ts'
import { CalendarView } from './calendar-view.tsx'
import { scheduleInWords } from './schedule.ts'
import { TaskForm } from './task-form.tsx'
import { TaskPanel } from './task-panel.tsx'

/** What runs when: the agents' tasks, and commands on the host. */
const tones = { active: 'good', paused: 'warn' } as const
const toneOf = (status: string) => (status === 'active' || status === 'paused' ? tones[status] : 'plain')

export function TasksPage() {
  const { id, query } = useRoute()
  const { group, status, q, view } = query
  const tasks = useAnswer<Task[]>(pathOf('/api/host/tasks', { all: status === 'all' ? '1' : undefined }), [
    'tasks',
    'jobs',
  ])
  // A link may lead to a task that is over.
  const isElsewhere =
    id !== undefined && tasks.value !== undefined && !tasks.value.some(task => task.id === id)
  const others = useAnswer<Task[]>(isElsewhere ? '/api/host/tasks?all=1' : null)
  const { value: groups = [] } = useAnswer<GroupDetails[]>('/api/host/groups', ['groups'])
  const mayChange = useMay('admin')
  const [isNew, setNew] = useState(false)
  const filter = (changes: Record<string, string | undefined>) =>
    replace(hrefOf('tasks', id, { ...query, ...changes }))
  const isCalendar = view === 'calendar'
  // One that has just left the list stays open while it is looked for among those that are over.
  const last = useRef<Task>(undefined)
  const opened = [...(tasks.value ?? []), ...(others.value ?? []), last.current].find(task => task?.id === id)
  last.current = opened
  const shown = (tasks.value ?? []).filter(
    task =>
      (group === undefined || task.group === group) &&
      (status === undefined || status === 'all' || task.status === status) &&
      (q === undefined ||
        `${task.prompt} ${task.job?.name ?? ''} ${task.job?.command ?? ''}`
          .toLowerCase()
          .includes(q.toLowerCase())),
  )
  const back = hrefOf('tasks', undefined, query)
  const isWithoutAny = tasks.value?.length === 0
  const emptyTitle = !isWithoutAny
    ? 'No task fits'
    : status === 'all'
      ? 'No task yet'
      : 'No task is active or paused'

  return (
    <div className={`split ${id === undefined ? '' : 'open'}`}>
      <PageFrame
        title="Tasks"
        hint="What agents are woken for, and commands on the host"
        actions={
          <>
            <fieldset className="switch" aria-label="View">
              <button type="button" aria-pressed={!isCalendar} onClick={() => filter({ view: undefined })}>
                List
              </button>
              <button type="button" aria-pressed={isCalendar} onClick={() => filter({ view: 'calendar' })}>
                Calendar
              </button>
            </fieldset>
            {mayChange && groups.length > 0 && (
              <button type="button" className="primary" onClick={() => setNew(true)}>
                <Icon name="plus" size={16} /> New task
              </button>
            )}
          </>
        }
      >
        {tasks.error !== undefined && <ErrorText>{visible(tasks.error)}</ErrorText>}
        {isCalendar ? (
          <CalendarView query={query} tasks={tasks.value ?? []} />
        ) : (
          <>
            <div className="filters">
              <SearchBox label="Search tasks" value={q} change={value => filter({ q: value })} />
              <GroupSelect groups={groups} value={group} change={value => filter({ group: value })} />
              <Select
                label="Status"
                all="Active and paused"
                value={status}
                options={['active', 'paused', ['all', 'Also those that are over']]}
                change={value => filter({ status: value })}
              />
            </div>
            {!tasks.value && tasks.error === undefined && <Loading />}
            {tasks.value && shown.length === 0 && (
              <Empty icon="tasks" title={emptyTitle}>
                {tasks.value.length > 0 && <p>Clear a filter to see more.</p>}
                {tasks.value.length === 0 && (
                  <p>Ask an agent in the chat to remind you of something, or make a new task here.</p>
                )}
                {tasks.value.length === 0 && status !== 'all' && (
                  <button type="button" onClick={() => filter({ status: 'all' })}>
                    Show those that are over
                  </button>
                )}
              </Empty>
            )}
            {shown.length > 0 && <TaskTable tasks={shown} query={query} openId={id} />}
          </>
        )}
      </PageFrame>
      {opened && (
        <TaskPanel key={opened.id} task={opened} groups={groups} back={back} changed={tasks.reload} />
      )}
      {isElsewhere && others.value && !opened && (
        <Panel title="No such task" back={back}>
          <p>It may have been removed long ago.</p>
        </Panel>
      )}
      {isNew && <TaskForm groups={groups} close={() => setNew(false)} done={tasks.reload} />}
    </div>
  )
}

interface TaskTableProps {
  tasks: readonly Task[]
  query: Readonly<Record<string, string>>
  openId: string | undefined
}

const TaskTable = ({ tasks, query, openId }: TaskTableProps) => (
  <table className="table">
    <Columns names={['Task', 'Group', 'Runs', 'Next run', 'Status']} />
    <tbody>
      {tasks.map(task => (
        <tr key={task.id} className={task.id === openId ? 'open' : ''}>
          <td>
            <a className="row-link" href={hrefOf('tasks', task.id, query)}>
              {shortly(task.job?.name ?? task.prompt, 90)}
            </a>
            {task.job && (
              <p className="hint command">
                <Badge>host job</Badge> <code>{shortly(task.job.command, 90)}</code>
              </p>
            )}
          </td>
          <td data-name="Group">{visible(task.group)}</td>
          <td data-name="Runs">{visible(scheduleInWords(task))}</td>
          <td data-name="Next run">
            <Time at={task.next_run} />
          </td>
          <td data-name="Status">
            <Badge tone={toneOf(task.status)}>{task.status}</Badge>
          </td>
        </tr>
      ))}
    </tbody>
  </table>
)
