import type { Command, GroupDetails } from '@hatchway/host/api-types'
import { useVirtualizer } from '@tanstack/react-virtual'
import { useCallback, useEffect, useLayoutEffect, useRef, useState, useSyncExternalStore } from 'react'
import { useAnswer } from '../../live/use-answer.ts'
import { clockOf, count, spanOf } from '../../parts/figures.ts'
import { GroupSelect, Select } from '../../parts/filters.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Badge, Empty, ErrorText, Loading, PageFrame, type Tone } from '../../parts/parts.tsx'
import { shortly, visible } from '../../parts/text.ts'
import { Time } from '../../parts/time.tsx'
import { hrefOf, replace, useRoute } from '../../shell/route.ts'
import { CommandPanel } from './command-panel.tsx'
import { type Decision, decisionOf } from './list.ts'
import { useTraffic } from './use-traffic.ts'

/** Every command, live. Only the rows in sight are in the page, however many there are. */
const rowHeight = 40
const narrowRowHeight = 66
const narrow = matchMedia('(max-width: 48rem)')
const watchWidth = (heard: () => void) => {
  narrow.addEventListener('change', heard)
  return () => narrow.removeEventListener('change', heard)
}

const tones: Readonly<Record<Decision, Tone>> = { done: 'good', refused: 'bad', open: 'warn' }

const types = [
  ...['send_message', 'react', 'schedule_task', 'update_task', 'pause_task', 'resume_task', 'cancel_task'],
  ...['register_group', 'unregister_group', 'refresh_groups', 'schedule_host_job', 'create_periodic_agent'],
  ...['deploy', 'reset_context', 'finished_work', 'sync_worktree', 'call_service', 'ask_user'],
  ...['cancel_request', 'check_shell'],
]

export function TrafficPage() {
  const { id, query } = useRoute()
  const { group, type, decision } = query
  const { value: groups } = useAnswer<GroupDetails[]>('/api/host/groups', ['groups'])
  const traffic = useTraffic({ group, type, decision })
  // What was there when somebody said to wait.
  const [held, setHeld] = useState<readonly Command[]>()
  const shown = held ?? traffic.commands
  const behind = held ? traffic.commands.filter(({ seq }) => seq > (held[0]?.seq ?? -1)).length : 0
  // biome-ignore lint/correctness/useExhaustiveDependencies: another filter shows other rows
  useEffect(() => setHeld(undefined), [group, type, decision])

  const filter = (changes: Record<string, string | undefined>) =>
    replace(hrefOf('traffic', id, { ...query, ...changes }))
  const isFiltered = group !== undefined || type !== undefined || decision !== undefined
  const isNothing = traffic.isLoaded && traffic.commands.length === 0

  return (
    <div className={`split ${id === undefined ? '' : 'open'}`}>
      <PageFrame
        title="Traffic"
        hint={
          held
            ? `Paused; ${count(behind)} new`
            : `${count(shown.length)}${traffic.hasOlder ? ' and more' : ''}, newest first`
        }
        actions={
          <button
            type="button"
            aria-pressed={held !== undefined}
            onClick={() => setHeld(held ? undefined : traffic.commands)}
          >
            <Icon name={held ? 'play' : 'pause'} size={16} /> {held ? 'Go on' : 'Pause'}
          </button>
        }
      >
        <div className="filters">
          <GroupSelect groups={groups ?? []} value={group} change={value => filter({ group: value })} />
          <Select
            label="Type"
            all="All types"
            value={type}
            options={types}
            change={value => filter({ type: value })}
          />
          <Select
            label="Decision"
            all="All decisions"
            value={decision}
            options={['done', 'refused', 'open']}
            change={value => filter({ decision: value })}
          />
          {isFiltered && (
            <button
              type="button"
              className="quiet"
              onClick={() => filter({ group: undefined, type: undefined, decision: undefined })}
            >
              Clear
            </button>
          )}
        </div>
        <ErrorText>{traffic.error === undefined ? '' : visible(traffic.error)}</ErrorText>
        {!traffic.isLoaded && shown.length === 0 && <Loading />}
        {isNothing ? (
          <Empty icon="traffic" title={isFiltered ? 'Nothing fits these filters' : 'No command yet'}>
            <p>
              {isFiltered
                ? 'Clear a filter to see more.'
                : 'As soon as an agent asks for something, it stands here. In a terminal: '}
              {!isFiltered && <code>npx hatchway post --help</code>}
            </p>
          </Empty>
        ) : (
          <Rows
            commands={shown}
            query={query}
            openSeq={id === undefined ? undefined : Number(id)}
            more={traffic.hasOlder && !held ? traffic.loadOlder : undefined}
          />
        )}
      </PageFrame>
      {id !== undefined && <CommandPanel key={id} id={id} back={hrefOf('traffic', undefined, query)} />}
    </div>
  )
}

interface RowsProps {
  commands: readonly Command[]
  query: Readonly<Record<string, string>>
  openSeq: number | undefined
  more: (() => void) | undefined
}

function Rows({ commands, query, openSeq, more }: RowsProps) {
  const isNarrow = useSyncExternalStore(watchWidth, () => narrow.matches)
  const height = isNarrow ? narrowRowHeight : rowHeight
  const place = useRef<HTMLDivElement>(null)
  const rows = useVirtualizer({
    count: commands.length,
    getScrollElement: () => place.current,
    estimateSize: () => height,
    overscan: 12,
    getItemKey: useCallback((i: number) => commands[i]?.seq ?? i, [commands]),
  })
  // biome-ignore lint/correctness/useExhaustiveDependencies: rows have another height now
  useEffect(() => rows.measure(), [height])

  // Whoever reads further down is not moved by what comes in above.
  const first = useRef<number | undefined>(undefined)
  useLayoutEffect(() => {
    const before = first.current
    first.current = commands[0]?.seq
    const element = place.current
    if (!element || element.scrollTop < height || before === undefined) return
    const added = commands.findIndex(({ seq }) => seq === before)
    if (added > 0) element.scrollTop += added * height
  }, [commands, height])

  const shown = rows.getVirtualItems()
  const last = shown.at(-1)?.index ?? 0
  useEffect(() => {
    if (more && last >= commands.length - 40) more()
  }, [more, last, commands.length])

  const total = commands.length
  return (
    <div className="rows" ref={place}>
      <div className="row-head" aria-hidden="true">
        <span>Time</span>
        <span>Group</span>
        <span>Type</span>
        <span>Decision</span>
        <span>Took</span>
      </div>
      <ol className="row-list" style={{ height: rows.getTotalSize() }} aria-label="Commands">
        {shown.map(({ index, key, start }) => {
          const command = commands[index]
          if (!command) return null
          return (
            <li
              key={key}
              style={{ transform: `translateY(${start}px)`, height }}
              aria-setsize={total}
              aria-posinset={index + 1}
            >
              <Row command={command} query={query} isOpen={command.seq === openSeq} />
            </li>
          )
        })}
      </ol>
    </div>
  )
}

interface RowProps {
  command: Command
  query: Readonly<Record<string, string>>
  isOpen: boolean
}

function Row({ command, query, isOpen }: RowProps) {
  const decision = decisionOf(command)
  const at = Date.parse(command.received_at)
  const reason = command.outcome?.ok === false ? command.outcome.error.code : decision
  return (
    <a
      className="traffic-row"
      href={hrefOf('traffic', command.seq, query)}
      aria-current={isOpen ? 'true' : undefined}
    >
      <span className="row-time" title={command.received_at}>
        <span className="exact">{clockOf(at)}</span>
        <Time at={command.received_at} />
      </span>
      <span className="row-group">{shortly(command.group, 64)}</span>
      <span className="row-type">{shortly(command.type ?? command.file, 80)}</span>
      <span className="row-decision">
        <Badge tone={tones[decision]}>{reason}</Badge>
        {command.repeated && <Badge>again</Badge>}
      </span>
      <span className="row-took">{spanOf(command.took_us)}</span>
    </a>
  )
}
