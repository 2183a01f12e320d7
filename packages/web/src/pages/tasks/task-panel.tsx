import type { GroupDetails, JobRun, Occurrence } from '@hatchway/host/api-types'
import type { Task } from '@hatchway/protocol'
import { useState } from 'react'
import { change } from '../../host/ask.ts'
import { useAction } from '../../live/use-action.ts'
import { useAnswer } from '../../live/use-answer.ts'
import { spanOf } from '../../parts/figures.ts'
import { Icon } from '../../parts/icon.tsx'
import {
  Badge,
  Confirm,
  ErrorText,
  Facts,
  Loading,
  Panel,
  Source,
  type Tone,
  Waiting,
} from '../../parts/parts.tsx'
import { shortly, visible } from '../../parts/text.ts'
import { Time } from '../../parts/time.tsx'
import { announce } from '../../parts/toast.tsx'
import { useMay } from '../../shell/me.ts'
import { hrefOf } from '../../shell/route.ts'
import { scheduleInWords } from './schedule.ts'
import { TaskForm } from './task-form.tsx'

/** One task: what it does and when, what came of it, and what can be done with it. */
const tones: Readonly<Record<Occurrence['status'], Tone>> = {
  claimed: 'plain',
  running: 'mark',
  done: 'good',
  failed: 'bad',
  skipped: 'warn',
}

interface TaskPanelProps {
  task: Task
  groups: readonly GroupDetails[]
  back: string
  changed: () => void
}

export function TaskPanel({ task, groups, back, changed }: TaskPanelProps) {
  const path = `/api/host/tasks/${encodeURIComponent(task.id)}`
  const history = useAnswer<Occurrence[]>(`${path}/history?limit=100`, ['tasks', 'jobs', 'runs'])
  const mayChange = useMay('admin')
  const { attempt, isBusy, error } = useAction()
  const [asked, setAsked] = useState<'edit' | 'cancel'>()
  const isOver = task.status !== 'active' && task.status !== 'paused'

  const act = async (action: 'pause' | 'resume' | 'run' | 'cancel', said: string) => {
    if (!(await attempt(() => change('POST', `${path}/${action}`)))) return
    announce(said)
    setAsked(undefined)
    changed()
    history.reload()
  }

  return (
    <Panel title={shortly(task.job?.name ?? task.prompt, 80)} back={back}>
      {mayChange && !isOver && (
        <div className="actions">
          <button type="button" aria-busy={isBusy} onClick={() => act('run', 'It runs now.')}>
            <Icon name="play" size={16} /> Run now
          </button>
          {task.status === 'active' ? (
            <button type="button" onClick={() => act('pause', 'The task is paused.')}>
              <Icon name="pause" size={16} /> Pause
            </button>
          ) : (
            <button type="button" onClick={() => act('resume', 'The task runs again.')}>
              <Icon name="again" size={16} /> Resume
            </button>
          )}
          <button type="button" onClick={() => setAsked('edit')}>
            Edit
          </button>
          <button type="button" className="danger" onClick={() => setAsked('cancel')}>
            Cancel task
          </button>
        </div>
      )}
      <ErrorText>{asked === 'cancel' ? '' : error}</ErrorText>
      <section>
        <Facts
          facts={[
            [
              'Status',
              <Badge key="status" tone={task.status === 'active' ? 'good' : 'plain'}>
                {task.status}
              </Badge>,
            ],
            ['Runs', visible(scheduleInWords(task))],
            ['Next run', <Time key="next" at={task.next_run} />],
            ['Last run', <Time key="last" at={task.last_run} />],
            [
              'Group',
              <a key="group" href={hrefOf('groups', task.group)}>
                {visible(task.group)}
              </a>,
            ],
            ['Made by', visible(task.created_by)],
            ['Conversation', task.context_mode === 'group' ? 'the group’s own' : 'a fresh one'],
            ['Id', <code key="id">{visible(task.id)}</code>],
          ]}
        />
      </section>
      {task.job ? (
        <section>
          <h3>Command on the host</h3>
          <Source label="Command on the host">{visible(task.job.command)}</Source>
        </section>
      ) : (
        <section>
          <h3>Prompt</h3>
          <Source label="Prompt">{visible(task.prompt)}</Source>
        </section>
      )}
      {task.script !== null && (
        <section>
          <h3>Script that runs first</h3>
          <Source label="Script that runs first">{visible(task.script)}</Source>
        </section>
      )}
      <section>
        <h3>History</h3>
        <Waiting value={history.value} error={history.error} />
        {history.value?.length === 0 && <p className="hint">It has not run yet.</p>}
        <ul className="history">
          {history.value?.map(each => (
            <HistoryLine key={each.id} occurrence={each} isJob={task.job !== undefined} />
          ))}
        </ul>
      </section>
      {asked === 'edit' && (
        <TaskForm task={task} groups={groups} close={() => setAsked(undefined)} done={changed} />
      )}
      {asked === 'cancel' && (
        <Confirm
          title="Cancel this task?"
          action="Cancel task"
          isBusy={isBusy}
          error={error}
          confirm={() => act('cancel', 'The task is cancelled.')}
          close={() => setAsked(undefined)}
        >
          <p>It ends for good. Its history is kept.</p>
        </Confirm>
      )}
    </Panel>
  )
}

function HistoryLine({ occurrence, isJob }: { occurrence: Occurrence; isJob: boolean }) {
  const { status, due_at, started_at, ended_at, result, error, manual, run_id } = occurrence
  const [isOpen, setOpen] = useState(false)
  const took = started_at && ended_at ? Date.parse(ended_at) - Date.parse(started_at) : undefined
  return (
    <li>
      <div className="line">
        <Badge tone={tones[status]}>{status}</Badge>
        <Time at={started_at ?? due_at} />
        {manual && <Badge>by hand</Badge>}
        {took !== undefined && <span className="faint">{spanOf(took * 1000)}</span>}
        {run_id !== null && !isJob && <a href={hrefOf('runs', run_id)}>transcript</a>}
        {isJob && (
          <button
            type="button"
            className="quiet small"
            aria-expanded={isOpen}
            onClick={() => setOpen(!isOpen)}
          >
            output
          </button>
        )}
      </div>
      {(error ?? result) !== null && <p className="hint">{shortly(error ?? result ?? '', 300)}</p>}
      {isOpen && <JobOutput id={occurrence.id} />}
    </li>
  )
}

function JobOutput({ id }: { id: string }) {
  const { value, error } = useAnswer<JobRun>(`/api/host/job-runs/${encodeURIComponent(id)}`)
  if (error !== undefined) return <ErrorText>{visible(error)}</ErrorText>
  if (!value) return <Loading />
  return (
    <>
      <Source label="Output">{value.output === '' ? '(it printed nothing)' : visible(value.output)}</Source>
      <p className="hint">
        {value.timed_out ? 'Its time was over. ' : ''}
        {value.exit_code === null ? '' : `It ended with ${value.exit_code}. `}
        {value.dropped > 0 ? `${value.dropped} bytes in the middle are not kept.` : ''}
      </p>
    </>
  )
}
