import type { AuditEntry, AuditReport, GroupDetails } from '@hatchway/host/api-types'
import { useCallback, useEffect, useState } from 'react'
import { ask, messageOf, pathOf } from '../../host/ask.ts'
import { useAction } from '../../live/use-action.ts'
import { useAnswer } from '../../live/use-answer.ts'
import { absolute, count } from '../../parts/figures.ts'
import { GroupSelect, SearchBox, Select } from '../../parts/filters.tsx'
import {
  Badge,
  Columns,
  Empty,
  Facts,
  PageFrame,
  Panel,
  Source,
  type Tone,
  Waiting,
} from '../../parts/parts.tsx'
import { shortly, visible } from '../../parts/text.ts'
import { Time } from '../../parts/time.tsx'
import { hrefOf, replace, useRoute } from '../../shell/route.ts'

/** What the guard decided, and whether all of it is still there. */
const pageSize = 100

const toneOf = (outcome: string): Tone =>
  outcome === 'allowed' || outcome === 'done'
    ? 'good'
    : /denied|refused|blocked|failed/.test(outcome)
      ? 'bad'
      : 'plain'

function useEntries(path: string) {
  const [entries, setEntries] = useState<readonly AuditEntry[]>()
  const [hasMore, setMore] = useState(false)
  const [error, setError] = useState<string>()
  const load = useCallback(
    async (before?: number) => {
      try {
        const separator = path.includes('?') ? '&' : '?'
        const page = await ask<AuditEntry[]>(
          before === undefined ? path : `${path}${separator}before=${before}`,
        )
        setEntries(known => (before === undefined ? page : [...(known ?? []), ...page]))
        setMore(page.length === pageSize)
        setError(undefined)
      } catch (error) {
        setError(messageOf(error))
      }
    },
    [path],
  )
  useEffect(() => {
    load()
  }, [load])
  return { entries, hasMore, error, load }
}

export function AuditPage() {
  const { id, query } = useRoute()
  const { group, gate, q } = query
  const path = pathOf('/api/host/audit', { group, gate, text: q, limit: pageSize })
  const { entries, hasMore, error, load } = useEntries(path)
  const { value: groups = [] } = useAnswer<GroupDetails[]>('/api/host/groups', ['groups'])
  const filter = (changes: Record<string, string | undefined>) =>
    replace(hrefOf('audit', id, { ...query, ...changes }))
  const isFiltered = group !== undefined || gate !== undefined || q !== undefined
  return (
    <div className={`split ${id === undefined ? '' : 'open'}`}>
      <PageFrame
        title="Audit"
        hint="What the guard decided; nothing in it can be changed unnoticed"
        actions={<Verify />}
      >
        <div className="filters">
          <SearchBox label="Search the audit log" value={q} change={text => filter({ q: text })} />
          <GroupSelect groups={groups} value={group} change={text => filter({ group: text })} />
          <Select
            label="Gate"
            all="All gates"
            value={gate}
            options={['allow', 'inspect', 'ask', 'block']}
            change={text => filter({ gate: text })}
          />
        </div>
        <Waiting value={entries} error={error} />
        {entries?.length === 0 && (
          <Empty icon="audit" title={isFiltered ? 'No entry fits' : 'No entry yet'}>
            <p>
              {isFiltered
                ? 'Clear a filter to see more.'
                : 'Whatever the guard has to decide is written down here.'}
            </p>
          </Empty>
        )}
        {entries && entries.length > 0 && (
          <table className="table">
            <Columns names={['What', 'Group', 'Gate', 'Outcome', 'When']} />
            <tbody>
              {entries.map(entry => (
                <tr key={entry.seq} className={String(entry.seq) === id ? 'open' : ''}>
                  <td>
                    <a className="row-link" href={hrefOf('audit', entry.seq, query)}>
                      {shortly(entry.summary, 120)}
                    </a>
                    <p className="hint">
                      {visible(entry.action)} by {visible(entry.actor)}
                    </p>
                  </td>
                  <td data-name="Group">{visible(entry.group ?? '–')}</td>
                  <td data-name="Gate">{visible(entry.gate ?? '–')}</td>
                  <td data-name="Outcome">
                    <Badge tone={toneOf(entry.outcome)}>{visible(entry.outcome)}</Badge>
                  </td>
                  <td data-name="When">
                    <Time at={entry.at} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
        {entries && hasMore && (
          <p className="more-rows">
            <button type="button" onClick={() => load(entries.at(-1)?.seq)}>
              Older entries
            </button>
          </p>
        )}
      </PageFrame>
      {id !== undefined && <AuditPanel key={id} id={id} back={hrefOf('audit', undefined, query)} />}
    </div>
  )
}

function Verify() {
  const [report, setReport] = useState<AuditReport>()
  const { attempt, isBusy, error } = useAction()
  const verify = () =>
    attempt(async () => {
      setReport(undefined)
      setReport(await ask<AuditReport>('/api/host/audit/verify'))
    })
  return (
    <div className="verify">
      <p role="status" className={report && !report.ok ? 'error' : 'hint'}>
        {isBusy && 'Reading all of it…'}
        {report?.ok && (
          <>
            <Badge tone="good">whole</Badge> {count(report.entries)} entries, up to{' '}
            <code title={report.head.hash}>
              {report.head.seq}:{report.head.hash.slice(0, 12)}
            </code>
            {report.removed && `; older ones were removed on ${absolute(Date.parse(report.removed.at))}`}
          </>
        )}
        {report && !report.ok && `Entry ${report.seq}: ${visible(report.message)}`}
        {error}
      </p>
      <button type="button" aria-busy={isBusy} onClick={verify}>
        Verify
      </button>
    </div>
  )
}

function AuditPanel({ id, back }: { id: string; back: string }) {
  const { value: entry, error } = useAnswer<AuditEntry>(`/api/host/audit/${encodeURIComponent(id)}`)
  return (
    <Panel title={`Entry ${id}`} back={back}>
      <Waiting value={entry} error={error} />
      {entry && (
        <>
          <p>{visible(entry.summary)}</p>
          <section>
            <Facts
              facts={[
                ['Action', <code key="action">{visible(entry.action)}</code>],
                ['Actor', visible(entry.actor)],
                ['Group', visible(entry.group ?? 'none')],
                ['Gate', visible(entry.gate ?? 'none')],
                ['Verdict', visible(entry.verdict ?? 'none')],
                ['Decided by', visible(entry.decided_by ?? 'nobody')],
                ['Reason', visible(entry.reason ?? 'none')],
                [
                  'Outcome',
                  <Badge key="outcome" tone={toneOf(entry.outcome)}>
                    {visible(entry.outcome)}
                  </Badge>,
                ],
                ['Had read', entry.taint === null ? 'not known' : taintInWords(entry.taint)],
                ['Took', entry.took_ms === null ? 'not measured' : `${count(entry.took_ms)} ms`],
                [
                  'Request',
                  entry.request_id === null ? 'none' : <code key="request">{visible(entry.request_id)}</code>,
                ],
                ['When', absolute(Date.parse(entry.at))],
                ['Hash', <code key="hash">{entry.hash}</code>],
              ]}
            />
          </section>
          {entry.details !== null && (
            <section>
              <h3>Details</h3>
              <Source label="Details">{visible(JSON.stringify(entry.details, null, 2))}</Source>
            </section>
          )}
        </>
      )}
    </Panel>
  )
}

const taintInWords = ({ corrupted, secret }: { corrupted: boolean; secret: boolean }) =>
  [corrupted && 'strangers’ words', secret && 'secrets'].filter(Boolean).join(' and ') ||
  'neither strangers’ words nor secrets'
