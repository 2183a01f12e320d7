import type { Me, Overview } from '@hatchway/host/api-types'
import { useEffect, useState } from 'react'
import { useConnection } from '../live/streams.ts'
import { useAction } from '../live/use-action.ts'
import { useAnswer } from '../live/use-answer.ts'
import { toSeeTo, useChats } from '../pages/chat/store.ts'
import { count } from '../parts/figures.ts'
import { Icon, type IconName } from '../parts/icon.tsx'
import { visible } from '../parts/text.ts'
import { pages } from './pages.ts'
import { hrefOf, type Route } from './route.ts'
import { showShortcuts } from './shortcuts.tsx'
import { setTheme, type Theme, useTheme } from './theme.ts'

/** Beside the page on a desk, below it on a phone. */
export function Navigation({ route, me, leave }: { route: Route; me: Me; leave: () => Promise<void> }) {
  const [isOpen, setOpen] = useState(false)
  const { value } = useAnswer<Overview>('/api/host/overview', [
    ...(['approvals', 'questions', 'errors'] as const),
  ])
  const waiting: Partial<Record<string, number>> = {
    chat: toSeeTo(useChats()),
    approvals: value ? value.waiting.approvals + value.waiting.questions : 0,
    errors: value?.waiting.errors ?? 0,
  }
  const hidden = pages.filter(({ isFirst }) => !isFirst)
  const isBehind = hidden.some(({ id }) => id === route.page)
  const hiddenCount = hidden.reduce((sum, { id }) => sum + (waiting[id] ?? 0), 0)

  // biome-ignore lint/correctness/useExhaustiveDependencies: whoever went somewhere is done with it
  useEffect(() => setOpen(false), [route.page])
  useEffect(() => {
    if (!isOpen) return
    const onKey = (event: KeyboardEvent) => event.key === 'Escape' && setOpen(false)
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [isOpen])

  return (
    <header className={`side ${isOpen ? 'open' : ''}`}>
      <a className="brand" href={hrefOf('overview')}>
        <img src="/icon.svg" alt="" width="26" height="26" />
        Hatchway
      </a>
      <nav className="pages" aria-label="Pages">
        <ul>
          {pages.map(({ id, title, key, isFirst }) => (
            <li key={id} className={isFirst ? 'first' : 'behind'}>
              <a
                href={hrefOf(id)}
                aria-current={route.page === id ? 'page' : undefined}
                title={`${title} (g ${key})`}
              >
                <Icon name={id} />
                <span className="name">{title}</span>
                <Count value={waiting[id] ?? 0} />
              </a>
            </li>
          ))}
          <li className="rest">
            <button
              type="button"
              aria-expanded={isOpen}
              className={isBehind ? 'current' : ''}
              onClick={() => setOpen(!isOpen)}
            >
              <Icon name="more" />
              <span className="name">More</span>
              <Count value={hiddenCount} />
            </button>
          </li>
        </ul>
      </nav>
      <div className="foot">
        <Connection />
        <ThemeSwitch />
        <button type="button" className="quiet keys" title="Keyboard shortcuts (?)" onClick={showShortcuts}>
          <Icon name="keys" size={18} />
          <span className="unseen">Keyboard shortcuts</span>
        </button>
        <Who me={me} leave={leave} />
      </div>
    </header>
  )
}

const Count = ({ value }: { value: number }) =>
  value === 0 ? null : (
    <span className="count">
      {value > 999 ? '999+' : count(value)}
      <span className="unseen"> waiting</span>
    </span>
  )

const said = { connected: 'connected', connecting: 'connecting', disconnected: 'not connected' } as const

/** Quiet while all is well, and there while it is not. */
function Connection() {
  const state = useConnection()
  const title = state === 'connected' ? 'What is shown is up to date.' : 'The host is being looked for.'
  return (
    <p id="connection" className="connection" role="status" data-state={state} title={title}>
      <span className="name">{said[state]}</span>
    </p>
  )
}

const looks: Readonly<Record<Theme, { icon: IconName; next: Theme }>> = {
  system: { icon: 'screen', next: 'light' },
  light: { icon: 'sun', next: 'dark' },
  dark: { icon: 'moon', next: 'system' },
}

function ThemeSwitch() {
  const theme = useTheme()
  const { icon, next } = looks[theme]
  const label = `Colours: ${theme}. Switch to ${next}`
  return (
    <button type="button" className="quiet" title={label} aria-label={label} onClick={() => setTheme(next)}>
      <Icon name={icon} size={18} />
    </button>
  )
}

function Who({ me, leave }: { me: Me; leave: () => Promise<void> }) {
  const { attempt, isBusy, error } = useAction()
  return (
    <div className="who-am-i">
      <span className="name" title={`${visible(me.name)}, ${me.role}`}>
        {visible(me.name)} <span className="faint">{me.role}</span>
      </span>
      <button
        type="button"
        className="quiet"
        aria-busy={isBusy}
        aria-label="Sign out"
        title={error === '' ? 'Sign out' : error}
        onClick={() => attempt(leave)}
      >
        <Icon name="leave" size={18} />
      </button>
    </div>
  )
}
