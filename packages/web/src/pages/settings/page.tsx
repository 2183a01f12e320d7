import type { Setting, WebSession } from '@hatchway/host/api-types'
import { change } from '../../host/ask.ts'
import { useAction } from '../../live/use-action.ts'
import { useAnswer } from '../../live/use-answer.ts'
import { SearchBox } from '../../parts/filters.tsx'
import { Badge, Columns, Empty, ErrorText, PageFrame, Waiting } from '../../parts/parts.tsx'
import { shortly, visible } from '../../parts/text.ts'
import { Time } from '../../parts/time.tsx'
import { announce } from '../../parts/toast.tsx'
import { useMay } from '../../shell/me.ts'
import { hrefOf, replace, useRoute } from '../../shell/route.ts'
import { browserInWords } from './browser.ts'

/** How the host is set up, and where each value comes from. Changed in the configuration, not here. */
const written = (value: string | number | null): string =>
  value === null ? '–' : value === '' ? '(empty)' : visible(String(value))

export function SettingsPage() {
  const { query } = useRoute()
  const { value, error } = useAnswer<Setting[]>('/api/host/settings')
  const q = query.q?.toLowerCase()
  const isOwn = query.set === '1'
  const shown = (value ?? []).filter(
    setting =>
      (q === undefined ||
        `${setting.name} ${setting.description} ${setting.env} ${written(setting.value)}`
          .toLowerCase()
          .includes(q)) &&
      (!isOwn || setting.source !== 'default'),
  )
  const filter = (changes: Record<string, string | undefined>) =>
    replace(hrefOf('settings', undefined, { ...query, ...changes }))
  return (
    <PageFrame
      title="Settings"
      hint="Read-only here. They are changed in hatchway.config.ts or in the environment, and read when the daemon starts."
    >
      <div className="filters">
        <SearchBox label="Search settings" value={query.q} change={text => filter({ q: text })} />
        <label className="check">
          <input
            type="checkbox"
            checked={isOwn}
            onChange={event => filter({ set: event.target.checked ? '1' : undefined })}
          />
          Only what differs from the default
        </label>
      </div>
      <Waiting value={value} error={error} />
      {value && shown.length === 0 && (
        <Empty icon="settings" title="No setting fits">
          <p>{isOwn ? 'Everything is as it comes.' : 'Search for another word.'}</p>
        </Empty>
      )}
      {shown.length > 0 && (
        <table className="table settings">
          <Columns names={['Setting', 'Value', 'From', 'Default']} />
          <tbody>
            {shown.map(setting => (
              <tr key={setting.name}>
                <td>
                  <code className="name">{visible(setting.name)}</code>
                  <p className="hint">{withCode(visible(setting.description))}</p>
                  {setting.env !== '' && <p className="hint env">{visible(setting.env)}</p>}
                </td>
                <td data-name="Value">
                  <code>{written(setting.value)}</code>
                </td>
                <td data-name="From">
                  <Badge tone={setting.source === 'default' ? 'plain' : 'mark'}>
                    {visible(setting.source)}
                  </Badge>
                </td>
                <td data-name="Default">
                  <code>{written(setting.default)}</code>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <Browsers />
    </PageFrame>
  )
}

/** What stands between backticks is to be typed as it is. */
const withCode = (text: string) =>
  // biome-ignore lint/suspicious/noArrayIndexKey: a description does not change
  text.split('`').map((part, i) => (i % 2 === 0 ? part : <code key={i}>{part}</code>))

const ways = { link: 'by the link', password: 'with a password', oidc: 'with a provider' } as const

/** Who is let in, and putting them out. */
function Browsers() {
  const { value, error, reload } = useAnswer<WebSession[]>('/api/sessions')
  const mayRevoke = useMay('admin')
  const action = useAction()
  const revoke = async ({ id }: WebSession) => {
    if (!(await action.attempt(() => change('DELETE', `/api/sessions/${encodeURIComponent(id)}`)))) return
    announce('That browser is signed out.')
    reload()
  }
  return (
    <section className="box browsers">
      <h2>Browsers that are signed in</h2>
      <ErrorText>{error === undefined ? action.error : visible(error)}</ErrorText>
      <ul className="lines">
        {value?.map(session => (
          <li key={session.id}>
            <span className="grow">
              {visible(session.name)} <Badge>{session.role}</Badge>{' '}
              {session.current && <Badge tone="mark">this one</Badge>}
              <p className="hint">
                {ways[session.way]}, from {visible(session.address)}:{' '}
                {browserInWords(session.browser) ?? shortly(session.browser, 60)}
              </p>
            </span>
            <span className="faint">
              seen <Time at={session.seen_at} />
            </span>
            {mayRevoke && !session.current && (
              <button type="button" className="danger small" onClick={() => revoke(session)}>
                Sign out
              </button>
            )}
          </li>
        ))}
      </ul>
    </section>
  )
}
