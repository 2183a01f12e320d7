import type { GroupDetails, Run, Transcript } from '@hatchway/host/api-types'
import { change, pathOf } from '../../host/ask.ts'
import { useAction } from '../../live/use-action.ts'
import { useAnswer } from '../../live/use-answer.ts'
import { clockOf, spanOf } from '../../parts/figures.ts'
import { GroupSelect, Select } from '../../parts/filters.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Markdown } from '../../parts/markdown.tsx'
import {
  Badge,
  Columns,
  Empty,
  ErrorText,
  Facts,
  PageFrame,
  Source,
  type Tone,
  Waiting,
} from '../../parts/parts.tsx'
import { shortly, visible } from '../../parts/text.ts'
import { Time } from '../../parts/time.tsx'
import { useMay } from '../../shell/me.ts'
import { hrefOf, replace, useRoute } from '../../shell/route.ts'

/** What agents did: runs, and the steps of each. */
const tones: Readonly<Record<Run['status'], Tone>> = {
  running: 'mark',
  done: 'good',
  failed: 'bad',
  stopped: 'warn',
}

/** What ran, and where: an image may bring an agent of its own. */
const agentOf = ({ driver, image, sandbox }: Run) =>
  image === null
    ? `${visible(driver)} in ${visible(sandbox)}`
    : `${driver === 'image' ? '' : `${visible(driver)} from `}${visible(image)} in ${visible(sandbox)}`

const tookOf = ({ started_at, ended_at }: Run) =>
  ended_at === null ? undefined : spanOf((Date.parse(ended_at) - Date.parse(started_at)) * 1000)

export function RunsPage() {
  const { id } = useRoute()
  return id === undefined ? <RunList /> : <RunView key={id} id={id} />
}

function RunList() {
  const { query } = useRoute()
  const { group, status, task } = query
  const { value, error } = useAnswer<Run[]>(pathOf('/api/host/runs', { group, status, task, limit: 200 }), [
    'runs',
  ])
  const { value: groups = [] } = useAnswer<GroupDetails[]>('/api/host/groups', ['groups'])
  const filter = (changes: Record<string, string | undefined>) =>
    replace(hrefOf('runs', undefined, { ...query, ...changes }))
  const shown = (value ?? []).toSorted((a, b) => Date.parse(b.started_at) - Date.parse(a.started_at))
  return (
    <PageFrame title="Runs" hint="What agents did, step by step">
      <div className="filters">
        <GroupSelect groups={groups} value={group} change={text => filter({ group: text })} />
        <Select
          label="Status"
          all="All"
          value={status}
          options={['running', 'done', 'failed', 'stopped']}
          change={text => filter({ status: text })}
        />
        {task !== undefined && (
          <button type="button" className="quiet" onClick={() => filter({ task: undefined })}>
            of one task only <Icon name="close" size={14} />
          </button>
        )}
      </div>
      <Waiting value={value} error={error} />
      {value?.length === 0 && (
        <Empty icon="runs" title="No run">
          <p>
            {group === undefined && status === undefined && task === undefined ? (
              <>
                <a href={hrefOf('chat')}>Say something in a chat</a>, and its agent runs.
              </>
            ) : (
              'Clear a filter to see more.'
            )}
          </p>
        </Empty>
      )}
      {shown.length > 0 && (
        <table className="table">
          <Columns names={['Run', 'Group', 'Agent', 'Began', 'Took', 'Status']} />
          <tbody>
            {shown.map(run => (
              <tr key={run.id}>
                <td>
                  <a className="row-link" href={hrefOf('runs', run.id)}>
                    {run.kind === 'task' ? 'A task' : 'A conversation'}
                  </a>
                  <p className="hint">{shortly(run.error ?? run.result ?? '', 100)}</p>
                </td>
                <td data-name="Group">{visible(run.group)}</td>
                <td data-name="Agent">{agentOf(run)}</td>
                <td data-name="Began">
                  <Time at={run.started_at} />
                </td>
                <td data-name="Took">{tookOf(run) ?? 'goes on'}</td>
                <td data-name="Status">
                  <Badge tone={tones[run.status]}>{run.status}</Badge>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </PageFrame>
  )
}

function RunView({ id }: { id: string }) {
  const { value: run, error } = useAnswer<Transcript>(`/api/host/runs/${encodeURIComponent(id)}`, ['runs'])
  return (
    <PageFrame
      title={run ? `${run.kind === 'task' ? 'Task' : 'Conversation'} of ${visible(run.group)}` : 'Run'}
      hint={<a href={hrefOf('runs')}>All runs</a>}
      actions={
        run && (
          <>
            <Badge tone={tones[run.status]}>{run.status}</Badge>
            {run.status === 'running' && <StopRun id={run.id} />}
          </>
        )
      }
    >
      <Waiting value={run} error={error} />
      {run && (
        <>
          <section className="box">
            <Facts
              facts={[
                [
                  'Group',
                  <a key="group" href={hrefOf('groups', run.group)}>
                    {visible(run.group)}
                  </a>,
                ],
                ['Agent', agentOf(run)],
                ['Began', <Time key="began" at={run.started_at} />],
                ['Took', tookOf(run) ?? 'goes on'],
                [
                  'Task',
                  run.task_id === null ? (
                    'none'
                  ) : (
                    <a key="task" href={hrefOf('tasks', run.task_id)}>
                      {visible(run.task_id)}
                    </a>
                  ),
                ],
                ['Id', <code key="id">{visible(run.id)}</code>],
              ]}
            />
            {run.error !== null && <ErrorText>{visible(run.error)}</ErrorText>}
          </section>
          <section className="box">
            <h2>Transcript</h2>
            {run.steps.length === 0 && <p className="hint">Nothing was written down yet.</p>}
            <ol className="transcript">
              {run.steps.map((step, i) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: steps are only ever added at the end
                <li key={i} className={`step ${step.kind}`}>
                  <p className="about">
                    <span className="who">{visible(step.kind)}</span>
                    {step.name !== null && <code>{visible(step.name)}</code>}
                    <time dateTime={step.at}>{clockOf(Date.parse(step.at))}</time>
                  </p>
                  {isProse(step.kind) ? (
                    <div className="words">
                      <Markdown text={step.text} />
                    </div>
                  ) : (
                    step.text !== '' && (
                      <Source label={visible(step.name ?? step.kind)}>{visible(step.text)}</Source>
                    )
                  )}
                </li>
              ))}
            </ol>
          </section>
        </>
      )}
    </PageFrame>
  )
}

function StopRun({ id }: { id: string }) {
  const { attempt, isBusy, error } = useAction()
  if (!useMay('approver')) return undefined
  return (
    <>
      <ErrorText>{error}</ErrorText>
      <button
        type="button"
        disabled={isBusy}
        onClick={() => attempt(() => change('POST', `/api/host/runs/${encodeURIComponent(id)}/stop`))}
      >
        Stop
      </button>
    </>
  )
}

const isProse = (kind: string) =>
  ['text', 'prompt', 'result', 'message', 'assistant', 'user', 'say'].includes(kind)
