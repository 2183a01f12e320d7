import type { GroupDetails } from '@hatchway/host/api-types'
import type { Task } from '@hatchway/protocol'
import { useState } from 'react'
import { change } from '../../host/ask.ts'
import { useAction } from '../../live/use-action.ts'
import { Dialog, Field, TextField } from '../../parts/parts.tsx'
import { visible } from '../../parts/text.ts'
import { announce } from '../../parts/toast.tsx'

/** A new task, or another time or prompt for one. */
const examples = {
  cron: 'Minute, hour, day, month, weekday: 0 9 * * 1-5 is every weekday at 9:00.',
  interval: 'Whole milliseconds: 3600000 is every hour.',
  once: 'A time such as 2030-01-31T09:30:00, in the task’s zone if it names no offset.',
} as const
type Schedule = keyof typeof examples

interface TaskFormProps {
  /** left out: a new one */
  task?: Task
  groups: readonly GroupDetails[]
  close: () => void
  done: () => void
}

export function TaskForm({ task, groups, close, done }: TaskFormProps) {
  const [group, setGroup] = useState(
    task?.group ?? groups.find(({ main }) => main)?.folder ?? groups[0]?.folder ?? '',
  )
  const [prompt, setPrompt] = useState(task?.prompt ?? '')
  const [type, setType] = useState<Schedule>(task?.schedule_type ?? 'cron')
  const [value, setValue] = useState(task?.schedule_value ?? '0 9 * * 1-5')
  const [zone, setZone] = useState(task?.timezone ?? '')
  const [mode, setMode] = useState<Task['context_mode']>(task?.context_mode ?? 'group')
  const { attempt, isBusy, error } = useAction()

  const save = async () => {
    const fields = {
      ...(task?.job ? {} : { prompt, context_mode: mode }),
      schedule_type: type,
      schedule_value: value.trim(),
      ...(zone.trim() === '' ? {} : { timezone: zone.trim() }),
    }
    const isDone = await attempt(() =>
      task
        ? change('PATCH', `/api/host/tasks/${encodeURIComponent(task.id)}`, fields)
        : change('POST', '/api/host/tasks', { group, ...fields }),
    )
    if (!isDone) return
    announce(task ? 'The task is changed.' : 'The task is scheduled.')
    done()
    close()
  }

  return (
    <Dialog title={task ? 'Edit task' : 'New task'} close={close}>
      <form
        onSubmit={event => {
          event.preventDefault()
          save()
        }}
      >
        <div className="dialog-body">
          {!task && (
            <Field label="Group" hint="Its agent is woken with the prompt.">
              {id => (
                <select id={id} required value={group} onChange={event => setGroup(event.target.value)}>
                  {groups.map(({ folder, name }) => (
                    <option key={folder} value={folder}>
                      {visible(name)} ({folder})
                    </option>
                  ))}
                </select>
              )}
            </Field>
          )}
          {!task?.job && (
            <Field label="Prompt">
              {id => (
                <textarea
                  id={id}
                  required
                  rows={4}
                  maxLength={200_000}
                  value={prompt}
                  onChange={event => setPrompt(event.target.value)}
                />
              )}
            </Field>
          )}
          <div className="field-row">
            <Field label="Runs">
              {id => (
                <select id={id} value={type} onChange={event => setType(event.target.value as Schedule)}>
                  <option value="cron">by a cron expression</option>
                  <option value="interval">at an interval</option>
                  <option value="once">once</option>
                </select>
              )}
            </Field>
            <TextField label="When" required most={256} value={value} change={setValue} />
          </div>
          <p className="hint">{examples[type]}</p>
          <div className="field-row">
            <TextField label="Time zone" most={64} placeholder="the host’s" value={zone} change={setZone} />
            {!task?.job && (
              <Field label="Conversation">
                {id => (
                  <select
                    id={id}
                    value={mode}
                    onChange={event => setMode(event.target.value === 'isolated' ? 'isolated' : 'group')}
                  >
                    <option value="group">the group’s own</option>
                    <option value="isolated">a fresh one</option>
                  </select>
                )}
              </Field>
            )}
          </div>
        </div>
        <p className="error" role="alert">
          {error}
        </p>
        <div className="dialog-foot">
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" className="primary" aria-busy={isBusy}>
            {task ? 'Save' : 'Schedule'}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
