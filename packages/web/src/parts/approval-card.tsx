import type { Approval, Shown, WholeApproval } from '@hatchway/host/api-types'
import { useRef, useState } from 'react'
import { ask, change, messageOf } from '../host/ask.ts'
import { useAction } from '../live/use-action.ts'
import { useMay } from '../shell/me.ts'
import { count, secondOf } from './figures.ts'
import { useKeptFocus } from './keep-focus.ts'
import { visible } from './text.ts'

/**
 * Something an agent is not to do without a person: allowed or denied with a click. To allow it always takes a second
 * one, with everything in sight that will be allowed.
 */
interface ApprovalCardProps {
  approval: Approval
  /** who wants it */
  who: string
  /** where it is decided */
  path: string
  /** told what has become of it */
  decided: (approval: Approval) => void
  /** where the keyboard goes when the card is done */
  leave?: () => void
}

/** what is being written, by the approval's id: whoever comes back finds it again */
const drafts = new Map<string, string>()

export function ApprovalCard({ approval, who, path, decided, leave = () => {} }: ApprovalCardProps) {
  const { action, status } = approval
  const mayDecide = useMay('approver')
  const { attempt, isBusy, error } = useAction()
  const kept = useKeptFocus(status, leave)
  return (
    <div className={`card ${status}`} {...kept}>
      <p className="wants">
        {who} wants to <strong>{visible(action.summary)}</strong>
      </p>
      <Payload approval={approval} path={path} />
      <p className="why">You are asked because: {visible(approval.why)}</p>
      {status === 'open' && (
        <p className="until">
          If nobody decides by {secondOf(Date.parse(approval.expires_at))}, it is not done.
        </p>
      )}
      {status === 'open' && approval.can_decide && mayDecide ? (
        <Decision
          approval={approval}
          path={path}
          isBusy={isBusy}
          decide={(decision, words = '') =>
            attempt(async () => {
              const said = words.trim() === '' ? {} : { words }
              decided(await change<Approval>('POST', path, { decision, ...said }))
              drafts.delete(approval.id)
            })
          }
          attempt={attempt}
        />
      ) : (
        <Ending approval={approval} />
      )}
      <p className="error" role="alert">
        {error}
      </p>
    </div>
  )
}

function Ending({ approval: { status, decided_by, words, always } }: { approval: Approval }) {
  if (status === 'open') return <p className="ending">Others decide this.</p>
  if (status === 'expired') return <p className="ending">Nobody decided in time, so it was not done.</p>
  if (status === 'withdrawn') return <p className="ending">This is no longer needed.</p>
  return (
    <p className="given">
      <span className="who">
        {status === 'allowed' ? 'Allowed' : 'Denied'} by {visible(decided_by ?? 'somebody')}
        {words !== null && ': '}
      </span>
      {words !== null && visible(words)}
      {always && ', from now on without asking'}
    </p>
  )
}

/** Some of what is in it, and all of it for whoever wants to see that. */
function Payload({ approval, path }: { approval: Approval; path: string }) {
  const { payload } = approval.action
  const [whole, setWhole] = useState<Shown>()
  const [error, setError] = useState('')
  const show = async () => {
    try {
      setWhole((await ask<WholeApproval>(path)).whole ?? undefined)
    } catch (error) {
      setError(visible(messageOf(error)))
    }
  }
  if (whole) {
    return (
      <div>
        <Whole shown={whole} />
      </div>
    )
  }
  return (
    <div>
      <Fields shown={payload} />
      {payload.more > 0 && (
        <p className="hint">
          {error === '' ? `… and ${count(payload.more)} characters more ` : error}
          {approval.status === 'open' && error === '' && (
            <button type="button" className="again" onClick={show}>
              Show all
            </button>
          )}
        </p>
      )}
    </div>
  )
}

const Fields = ({ shown, isWhole = false }: { shown: Shown; isWhole?: boolean }) => (
  <div
    className={`shown ${isWhole ? 'whole' : ''}`}
    {...(isWhole && { tabIndex: 0, role: 'region', 'aria-label': 'All that is in it' })}
  >
    <dl>
      {shown.fields.map(({ name, text, note }, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: two fields may go by the same name
        <div key={i}>
          <dt>{visible(name)}</dt>
          <dd>{visible(text)}</dd>
          {note !== undefined && <dd className="note">⚠ {visible(note)}</dd>}
        </div>
      ))}
    </dl>
  </div>
)

/** All of it, however long: how much there is stands below, so that nobody takes its beginning for all. */
const Whole = ({ shown }: { shown: Shown }) => (
  <div>
    <Fields shown={shown} isWhole />
    <p className="hint">
      {count(shown.fields.reduce((sum, { text }) => sum + text.length, 0))} characters in all
    </p>
  </div>
)

interface DecisionProps {
  approval: Approval
  path: string
  isBusy: boolean
  decide: (decision: 'allow' | 'deny' | 'always' | 'always_tool', words?: string) => void
  attempt: (work: () => Promise<unknown>) => Promise<boolean>
}

function Decision({ approval, path, isBusy, decide, attempt }: DecisionProps) {
  const { id, action, can_always, can_always_tool } = approval
  const [words, setWords] = useState(drafts.get(id) ?? '')
  const [sure, setSure] = useState<{ group: string; all: Shown }>()
  const more = useRef<HTMLButtonElement>(null)
  const askForAlways = () =>
    attempt(async () => {
      const { group, whole } = await ask<WholeApproval>(path)
      setSure({ group, all: whole ?? action.payload })
    })
  const back = () => {
    setSure(undefined)
    requestAnimationFrame(() => more.current?.focus({ preventScroll: true }))
  }
  return (
    <fieldset className="decision" aria-busy={isBusy}>
      <legend className="unseen">{visible(action.summary)}</legend>
      <div className="choices" hidden={sure !== undefined}>
        <button type="button" className="allow" onClick={() => decide('allow')}>
          Allow
        </button>
        <button type="button" className="deny" onClick={() => decide('deny', words)}>
          Deny
        </button>
        {(can_always || can_always_tool) && (
          <button type="button" className="more" ref={more} onClick={askForAlways}>
            Allow always…
          </button>
        )}
      </div>
      <form
        className="spoken"
        hidden={sure !== undefined}
        onSubmit={event => {
          event.preventDefault()
          // Whoever presses Enter here has said why not.
          if (words.trim() !== '') decide('deny', words)
        }}
      >
        <input
          type="text"
          id={`approval-${id}-words`}
          maxLength={500}
          autoComplete="off"
          placeholder="Why not, for the agent"
          aria-label="Why not, for the agent"
          value={words}
          onChange={event => {
            drafts.set(id, event.target.value)
            setWords(event.target.value)
          }}
        />
      </form>
      {sure && (
        <div className="sure" ref={bringIntoView}>
          {can_always && (
            <>
              <p>
                From now on, and until the rule is revoked, the group {visible(sure.group)} may do exactly
                this without asking: <code>{visible(action.name)}</code>
              </p>
              <Whole shown={sure.all} />
            </>
          )}
          {can_always_tool && (
            <p>
              {can_always
                ? 'Or it may '
                : `From now on, and until the rule is revoked, the group ${visible(sure.group)} may `}
              use the tool <code>{visible(action.name)}</code> without asking, whatever it is called with.
            </p>
          )}
          <div className="choices">
            {/* What cannot be shown whole cannot be allowed for ever. */}
            {can_always && sure.all.more === 0 && (
              <button type="button" className="always" onClick={() => decide('always')}>
                Allow always
              </button>
            )}
            {can_always_tool && (
              <button type="button" className="always" onClick={() => decide('always_tool')}>
                Allow this tool
              </button>
            )}
            <button type="button" className="back" ref={focusOnce} onClick={back}>
              Back
            </button>
          </div>
        </div>
      )}
    </fieldset>
  )
}

const focusOnce = (button: HTMLButtonElement | null): void => button?.focus({ preventScroll: true })
const bringIntoView = (element: HTMLElement | null): void => element?.scrollIntoView({ block: 'nearest' })
