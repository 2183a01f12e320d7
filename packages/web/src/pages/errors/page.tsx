import type { RefusedFile } from '@hatchway/host/api-types'
import { change } from '../../host/ask.ts'
import { useAction } from '../../live/use-action.ts'
import { useAnswer } from '../../live/use-answer.ts'
import { count, sizeOf } from '../../parts/figures.ts'
import { SearchBox, Select } from '../../parts/filters.tsx'
import { Icon } from '../../parts/icon.tsx'
import {
  Badge,
  Columns,
  Empty,
  ErrorText,
  Facts,
  PageFrame,
  Panel,
  Source,
  Waiting,
} from '../../parts/parts.tsx'
import { shortly, visible } from '../../parts/text.ts'
import { Time } from '../../parts/time.tsx'
import { announce } from '../../parts/toast.tsx'
import { useMay } from '../../shell/me.ts'
import { go, hrefOf, replace, useRoute } from '../../shell/route.ts'

/** What was refused, why, and doing it after all once the cause is mended. */
const shownAtMost = 300

export function ErrorsPage() {
  const { id, query } = useRoute()
  const { group, code, q } = query
  const { value, error, reload } = useAnswer<RefusedFile[]>('/api/host/errors', ['errors'])
  const filter = (changes: Record<string, string | undefined>) =>
    replace(hrefOf('errors', id, { ...query, ...changes }))
  const all = value ?? []
  const fitting = all
    .filter(
      entry =>
        (group === undefined || entry.source_group === group) &&
        (code === undefined || entry.code === code) &&
        (q === undefined ||
          `${entry.error} ${entry.original_file} ${entry.type}`.toLowerCase().includes(q.toLowerCase())),
    )
    .toSorted((a, b) => Date.parse(b.processed_at) - Date.parse(a.processed_at))
  const shown = fitting.slice(0, shownAtMost)
  const back = hrefOf('errors', undefined, query)
  const unique = (pick: (entry: RefusedFile) => string) => [...new Set(all.map(pick))].sort()
  return (
    <div className={`split ${id === undefined ? '' : 'open'}`}>
      <PageFrame title="Errors" hint="Files that were refused, with the reason">
        <Waiting value={value} error={error} />
        {value?.length === 0 && (
          <Empty icon="approvals" title="Nothing was refused">
            <p>
              A file that the host cannot or may not carry out is kept here, and can be replayed once its
              cause is mended.
            </p>
          </Empty>
        )}
        {all.length > 0 && (
          <>
            <div className="filters">
              <SearchBox label="Search errors" value={q} change={text => filter({ q: text })} />
              <Select
                label="Group"
                all="All groups"
                value={group}
                options={unique(entry => entry.source_group)}
                change={text => filter({ group: text })}
              />
              <Select
                label="Code"
                all="All codes"
                value={code}
                options={unique(entry => entry.code)}
                change={text => filter({ code: text })}
              />
            </div>
            {fitting.length === 0 && (
              <Empty icon="search" title="No error fits">
                <p>Clear a filter to see more.</p>
              </Empty>
            )}
            {fitting.length > 0 && (
              <table className="table">
                <Columns names={['Reason', 'Code', 'Group', 'When']} />
                <tbody>
                  {shown.map(entry => (
                    <tr key={entry.id} className={entry.id === id ? 'open' : ''}>
                      <td>
                        <a className="row-link" href={hrefOf('errors', entry.id, query)}>
                          {shortly(entry.error, 120)}
                        </a>
                        <p className="hint">
                          {shortly(entry.type ?? entry.original_file ?? 'a file', 80)}
                          {entry.count > 1 && `, ${count(entry.count)} times`}
                        </p>
                      </td>
                      <td data-name="Code">
                        <Badge tone="bad">{visible(entry.code)}</Badge>
                      </td>
                      <td data-name="Group">{visible(entry.source_group)}</td>
                      <td data-name="When">
                        <Time at={entry.processed_at} />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            )}
            {fitting.length > shown.length && (
              <p className="hint">
                The latest {count(shown.length)} of {count(fitting.length)}. Filter to see others.
              </p>
            )}
          </>
        )}
      </PageFrame>
      {id !== undefined && <ErrorPanel key={id} id={id} back={back} changed={reload} />}
    </div>
  )
}

function ErrorPanel({ id, back, changed }: { id: string; back: string; changed: () => void }) {
  const path = `/api/host/errors/${encodeURIComponent(id)}`
  const { value, error } = useAnswer<RefusedFile>(`${path}?content=1`)
  const mayReplay = useMay('admin')
  const action = useAction()
  const replay = async () => {
    if (!(await action.attempt(() => change('POST', `${path}/replay`)))) return
    announce('The file was given in again. If it is refused once more, it comes back here.')
    changed()
    go(back)
  }
  return (
    <Panel title={value ? visible(value.code) : 'Refused file'} back={back}>
      <Waiting value={value} error={error} />
      {value && (
        <>
          <p>{visible(value.error)}</p>
          {mayReplay && value.kept && (
            <div className="actions">
              <button type="button" className="primary" aria-busy={action.isBusy} onClick={replay}>
                <Icon name="again" size={16} /> Replay
              </button>
            </div>
          )}
          <ErrorText>{action.error}</ErrorText>
          <section>
            <Facts
              facts={[
                [
                  'Group',
                  <a key="group" href={hrefOf('groups', value.source_group)}>
                    {visible(value.source_group)}
                  </a>,
                ],
                ['Type', visible(value.type ?? 'not known')],
                [
                  'File',
                  <code key="file">
                    {visible(
                      `${value.directory === null ? '' : `${value.directory}/`}${value.original_file ?? '?'}`,
                    )}
                  </code>,
                ],
                ['When', <Time key="when" at={value.processed_at} />],
                ['Size', sizeOf(value.size)],
                ['Times', count(value.count)],
                ['Kept', value.kept ? 'yes' : 'no: it was too large, or no file'],
              ]}
            />
          </section>
          <section>
            <h3>File as received</h3>
            {value.content ? (
              <>
                <Source label="File as received">{visible(decoded(value.content.base64))}</Source>
                {value.content.truncated && <p className="hint">Only its beginning is shown.</p>}
              </>
            ) : (
              <p className="hint">There is no file to show.</p>
            )}
          </section>
        </>
      )}
    </Panel>
  )
}

/** What is no UTF-8 is shown with signs in place of it. */
const decoded = (base64: string) =>
  new TextDecoder().decode(Uint8Array.from(atob(base64), character => character.charCodeAt(0)))
