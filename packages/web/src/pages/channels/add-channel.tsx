import type { ChannelAdded, ChannelState } from '@hatchway/host/api-types'
import { useState } from 'react'
import { change } from '../../host/ask.ts'
import { useAction } from '../../live/use-action.ts'
import { Dialog, TextField } from '../../parts/parts.tsx'
import { visible } from '../../parts/text.ts'

interface AddChannelProps {
  channel: ChannelState
  close: () => void
  done: () => void
}

/** Asks for what a chat app needs, and says what to do next. */
export function AddChannel({ channel: { name, title, installed, questions }, close, done }: AddChannelProps) {
  const [answers, setAnswers] = useState<Record<string, string>>({})
  const [added, setAdded] = useState<ChannelAdded>()
  const { attempt, isBusy, error } = useAction()
  const save = () =>
    attempt(async () => {
      const settings = Object.fromEntries(Object.entries(answers).filter(([, answer]) => answer !== ''))
      setAdded(await change<ChannelAdded>('POST', '/api/host/channels', { kind: name, settings }))
      done()
    })
  if (added)
    return (
      <Dialog title={`${title} is added`} close={close}>
        <div className="dialog-body">
          <p>As {visible(added.as)}. Next:</p>
          <ol>
            {added.next.map(step => (
              <li key={step}>{step}</li>
            ))}
          </ol>
        </div>
        <div className="dialog-foot">
          <button type="button" className="primary" onClick={close}>
            Done
          </button>
        </div>
      </Dialog>
    )
  return (
    <Dialog title={`Connect ${title}`} close={close}>
      <form
        onSubmit={event => {
          event.preventDefault()
          save()
        }}
      >
        <div className="dialog-body">
          {questions.map(({ key, question, secret }) => (
            <TextField
              key={key}
              label={question}
              type={secret ? 'password' : 'text'}
              autoComplete="off"
              most={4096}
              value={answers[key] ?? ''}
              change={text => setAnswers({ ...answers, [key]: text })}
            />
          ))}
          <p className="hint">
            It is tried first, and then kept on the host, where no agent can read it.
            {!installed && ' What it needs is installed first, which may take a minute.'}
          </p>
        </div>
        <p className="error" role="alert">
          {error}
        </p>
        <div className="dialog-foot">
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" className="primary" aria-busy={isBusy}>
            Connect
          </button>
        </div>
      </form>
    </Dialog>
  )
}
