import type { ChannelState, GroupDetails, Overview } from '@hatchway/host/api-types'
import { useState } from 'react'
import { useAnswer } from '../../live/use-answer.ts'
import { Icon } from '../../parts/icon.tsx'
import { hrefOf } from '../../shell/route.ts'
import { ConnectModelDialog } from '../models/connect-model.tsx'
import { useChats } from './store.ts'

const dismissedKey = 'hatchway-first-steps'

/** What a new installation is for, step by step. Each is ticked off once it is so, however it came about. */
export function FirstSteps() {
  const [isDismissed, setDismissed] = useState(() => localStorage.getItem(dismissedKey) === 'dismissed')
  return isDismissed ? null : (
    <Steps
      dismiss={() => {
        localStorage.setItem(dismissedKey, 'dismissed')
        setDismissed(true)
      }}
    />
  )
}

function Steps({ dismiss }: { dismiss: () => void }) {
  const overview = useAnswer<Overview>('/api/host/overview', ['status', 'groups'])
  const groups = useAnswer<GroupDetails[]>('/api/host/groups', ['groups', 'messages', 'runs'])
  const channels = useAnswer<ChannelState[]>('/api/host/channels', ['status'])
  const [isAsked, setAsked] = useState(false)
  const hasJustSaid = [...useChats().entries.values()].some(({ direction }) => direction === 'in')
  if (!overview.value || !groups.value || !channels.value) return null
  const steps = [
    {
      name: 'Say something',
      isDone: hasJustSaid || groups.value.some(({ last_activity }) => last_activity !== null),
      action: undefined,
    },
    {
      name: 'Connect a model',
      isDone: overview.value.status.model_ready,
      action: (
        <button type="button" className="small" aria-label="Choose a model" onClick={() => setAsked(true)}>
          Choose
        </button>
      ),
    },
    {
      name: 'Connect a chat app',
      isDone: channels.value.some(({ added }) => added),
      action: (
        <a className="button small" aria-label="Choose a chat app" href={hrefOf('channels')}>
          Choose
        </a>
      ),
    },
    {
      name: 'Add a group',
      isDone: groups.value.length > 1,
      action: (
        <a className="button small" href={hrefOf('groups', undefined, { new: '1' })}>
          Add
        </a>
      ),
    },
  ]
  const isAllDone = steps.every(({ isDone }) => isDone)
  // The dialog says itself that the last step is done.
  if (isAllDone && !isAsked) return null
  return (
    <section className="first-steps" aria-label="First steps">
      <ol>
        {steps.map(({ name, isDone, action }) => (
          <li key={name} className={isDone ? 'done' : ''}>
            <span className="tick" aria-hidden="true">
              {isDone && '✓'}
            </span>
            {name}
            {isDone ? <span className="unseen"> (done)</span> : action}
          </li>
        ))}
      </ol>
      <button type="button" className="quiet" onClick={dismiss} aria-label="Dismiss the first steps">
        <Icon name="close" size={16} />
      </button>
      {isAsked && (
        <ConnectModelDialog
          close={() => setAsked(false)}
          done={() => {
            setAsked(false)
            overview.reload()
          }}
        />
      )}
    </section>
  )
}
