import type { Command, GroupDetails, Overview } from '@hatchway/host/api-types'
import { type ReactNode, useEffect, useState } from 'react'
import { feed } from '../../live/streams.ts'
import { useAnswer } from '../../live/use-answer.ts'
import { count, counted, longSpanOf, spanOf } from '../../parts/figures.ts'
import { Badge, Empty, ErrorText, Loading, PageFrame } from '../../parts/parts.tsx'
import { visible } from '../../parts/text.ts'
import { Time } from '../../parts/time.tsx'
import { useMay } from '../../shell/me.ts'
import { hrefOf } from '../../shell/route.ts'
import { FirstSteps } from '../chat/first-steps.tsx'
import { type Steps, stepsOf, withSecond } from './plot.ts'
import { TrafficPlot } from './traffic-plot.tsx'

/** What the agents do, at a glance. */
export function OverviewPage() {
  const { value, error, reload } = useAnswer<Overview>('/api/host/overview', [
    ...(['runs', 'groups', 'tasks', 'approvals', 'questions', 'errors', 'messages', 'deploys'] as const),
  ])
  const isAdmin = useMay('admin')
  const [steps, setSteps] = useState<Steps>()
  const [handled, setHandled] = useState({ handled: 0, refused: 0 })
  useEffect(() => {
    if (!value) return
    setSteps(stepsOf(value.traffic))
    setHandled({ handled: value.status.handled, refused: value.status.refused })
  }, [value])
  useEffect(
    () =>
      feed.on(event => {
        // Seconds are not told twice: whoever was away reads what they came to.
        if (event.kind === 'hello') reload()
        if (event.kind !== 'traffic') return
        setSteps(before => before && withSecond(before, event))
        setHandled(before => ({
          handled: before.handled + event.handled,
          refused: before.refused + event.refused,
        }))
      }),
    [reload],
  )
  // Latency is nobody's event.
  useEffect(() => {
    const timer = setInterval(reload, 15_000)
    return () => clearInterval(timer)
  }, [reload])

  if (!value) {
    return (
      <PageFrame title="Overview">
        {error === undefined ? <Loading /> : <ErrorText>{visible(error)}</ErrorText>}
      </PageFrame>
    )
  }
  const { status, waiting, latency, tasks } = value
  return (
    <PageFrame
      title="Overview"
      hint={
        <>
          Hatchway {status.version}, up for {longSpanOf(status.uptime_s)}
          {status.sandbox && <>, agents in {status.sandbox.name}</>}
        </>
      }
    >
      <ErrorText>{error === undefined ? '' : visible(error)}</ErrorText>
      {isAdmin && <FirstSteps />}
      <ul className="tiles">
        <Tile href={hrefOf('groups')} name="Groups" value={count(value.groups)} />
        <Tile
          href={hrefOf('runs', undefined, { status: 'running' })}
          name="Sessions running"
          value={count(value.sessions.length)}
        />
        <Tile href={hrefOf('traffic')} name="Handled" value={count(handled.handled)} note="since the start" />
        <Tile
          href={hrefOf('traffic', undefined, { decision: 'refused' })}
          name="Refused"
          value={count(handled.refused)}
          note={waiting.errors > 0 ? `${count(waiting.errors)} kept in errors` : 'none waits in errors'}
          isBad={waiting.errors > 0}
        />
        <Tile
          href={hrefOf('approvals')}
          name="Waiting for a person"
          value={count(waiting.approvals + waiting.questions)}
          note={`${counted(waiting.approvals, 'approval')}, ${counted(waiting.questions, 'question')}`}
          isBad={waiting.approvals + waiting.questions > 0}
        />
        <Tile
          href={hrefOf('traffic', undefined, { decision: 'open' })}
          name="Queue"
          value={count(waiting.messages + waiting.requests)}
          note={`${counted(waiting.messages, 'message')}, ${counted(waiting.requests, 'request')}`}
        />
        <Tile
          href={hrefOf('traffic')}
          name="Decided in (median)"
          value={latency.p50_us === null || latency.count === 0 ? '–' : spanOf(latency.p50_us)}
          note={
            latency.count === 0
              ? 'nothing measured yet'
              : `99 of 100 within ${spanOf(latency.p99_us ?? 0)}; lay ${spanOf((latency.waited_p50_ms ?? 0) * 1000)} before (median)`
          }
        />
        <Tile
          href={hrefOf('tasks')}
          name="Tasks"
          value={count(tasks.active)}
          note={
            tasks.next_run === null ? (
              'none is due'
            ) : (
              <>
                next <Time at={tasks.next_run} />
              </>
            )
          }
        />
      </ul>
      <section className="box">
        <h2>Traffic</h2>
        {steps && <TrafficPlot steps={steps} />}
      </section>
      <div className="columns">
        <Sessions overview={value} />
        <Refusals />
        <Groups />
      </div>
    </PageFrame>
  )
}

interface TileProps {
  href: string
  name: string
  value: string
  note?: ReactNode
  isBad?: boolean
}

const Tile = ({ href, name, value, note, isBad = false }: TileProps) => (
  <li>
    <a className={`tile ${isBad ? 'bad' : ''}`} href={href}>
      <span className="tile-name">{name}</span>
      <span className="tile-value">{value}</span>
      <span className="tile-note">{note}</span>
    </a>
  </li>
)

const Sessions = ({ overview }: { overview: Overview }) => (
  <section className="box">
    <h2>Sessions running</h2>
    {overview.sessions.length === 0 ? (
      <Empty icon="runs" title="No agent is at work">
        <p>
          {overview.status.agents_enabled ? (
            <>
              <a href={hrefOf('chat')}>Say something</a> to one, or <a href={hrefOf('tasks')}>run a task</a>.
            </>
          ) : (
            <>
              Agents are switched off. Start the daemon with <code>agents.enabled: 'yes'</code>.
            </>
          )}
        </p>
      </Empty>
    ) : (
      <ul className="lines">
        {overview.sessions.map(({ run_id, group, kind, state, started_at }) => (
          <li key={run_id}>
            <a href={hrefOf('runs', run_id)}>
              <span className="grow">{visible(group)}</span>
              <Badge>{kind}</Badge>
              <Badge tone={state === 'running' || state === 'busy' ? 'good' : 'plain'}>{state}</Badge>
              <Time at={started_at} />
            </a>
          </li>
        ))}
      </ul>
    )}
  </section>
)

function Refusals() {
  const { value } = useAnswer<Command[]>('/api/host/commands?ok=0&limit=6', ['errors'])
  const shown = (value ?? []).toSorted((a, b) => b.seq - a.seq).slice(0, 6)
  return (
    <section className="box">
      <h2>Latest refusals</h2>
      {shown.length === 0 ? (
        <Empty icon="approvals" title="Nothing was refused">
          <p>What an agent may not do is listed here, with the reason.</p>
        </Empty>
      ) : (
        <ul className="lines">
          {shown.map(command => (
            <li key={command.seq}>
              <a href={hrefOf('traffic', command.seq)}>
                <span className="grow">
                  {visible(command.type ?? command.file)}{' '}
                  <span className="faint">{visible(command.group)}</span>
                </span>
                <Badge tone="bad">
                  {command.outcome?.ok === false ? command.outcome.error.code : 'refused'}
                </Badge>
                <Time at={command.received_at} />
              </a>
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}

function Groups() {
  const { value } = useAnswer<GroupDetails[]>('/api/host/groups', ['groups', 'runs'])
  const mayAdd = useMay('admin')
  return (
    <section className="box">
      <h2>Groups</h2>
      {value?.length === 0 ? (
        <Empty icon="groups" title="No group yet">
          <p>
            {mayAdd ? (
              <a href={hrefOf('groups', undefined, { new: '1' })}>Add the first group</a>
            ) : (
              'An admin can add one.'
            )}
          </p>
        </Empty>
      ) : (
        <ul className="lines">
          {(value ?? []).map(group => (
            <li key={group.folder}>
              <a href={hrefOf('groups', group.folder)}>
                <span className="grow">{visible(group.name)}</span>
                {group.main && <Badge tone="mark">main</Badge>}
                {group.session && <Badge tone="good">{group.session.state}</Badge>}
                <Time at={group.last_activity} />
              </a>
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}
