import type { FoundModels } from '@hatchway/host/api-types'
import { useCallback, useEffect, useId, useState } from 'react'
import { change } from '../../host/ask.ts'
import { useAction } from '../../live/use-action.ts'
import { Badge, Dialog, ErrorText } from '../../parts/parts.tsx'
import { visible } from '../../parts/text.ts'
import { announce } from '../../parts/toast.tsx'

type Found = FoundModels['found'][number]

/** What can be used on this machine as it is, to choose from. */
export function ConnectModel({ done }: { done: () => void }) {
  const [answer, setAnswer] = useState<FoundModels>()
  const { attempt, isBusy, error } = useAction()
  const look = useCallback(
    () => attempt(async () => setAnswer(await change<FoundModels>('POST', '/api/host/models/find'))),
    [attempt],
  )
  useEffect(() => {
    look()
  }, [look])
  const isOpen = answer?.is_configured === false
  return (
    <div className="found-models">
      {answer === undefined && error === '' && <p className="loading">Looking for models…</p>}
      <ErrorText>{error}</ErrorText>
      {answer?.is_configured && (
        <p>
          The configuration names the model
          {answer.current && (
            <>
              : <code>{modelText(answer.current)}</code>
            </>
          )}
          . Change it there, and restart Hatchway.
        </p>
      )}
      {answer?.found.length === 0 && (
        <p>
          No models found. Start Ollama, LM Studio, llama.cpp or vLLM on the host, or set a key such as{' '}
          <code>ANTHROPIC_API_KEY</code> where Hatchway runs and restart it.
        </p>
      )}
      {answer && answer.found.length > 0 && (
        <ul className="lines">
          {answer.found.map(found => (
            <FoundProvider
              key={found.provider}
              found={found}
              current={answer.current}
              isOpen={isOpen}
              used={() => {
                look()
                done()
              }}
            />
          ))}
        </ul>
      )}
      {answer && (
        <button type="button" onClick={look} aria-busy={isBusy}>
          Look again
        </button>
      )}
    </div>
  )
}

const modelText = ({ provider, name }: NonNullable<FoundModels['current']>): string =>
  visible(name === null ? provider : `${provider}/${name}`)

interface FoundProviderProps {
  found: Found
  current: FoundModels['current']
  isOpen: boolean
  used: () => void
}

function FoundProvider({ found, current, isOpen, used }: FoundProviderProps) {
  const { provider, title, url, key_variable, models, problem } = found
  const isCurrent = current?.provider === provider
  const [name, setName] = useState((isCurrent ? current.name : null) ?? models[0] ?? '')
  const { attempt, isBusy, error } = useAction()
  const field = useId()
  const use = async () => {
    if (!(await attempt(() => change('POST', '/api/host/models/choose', { provider, name })))) return
    announce(`Agents ask ${visible(name)} from now on.`)
    used()
  }
  return (
    <li className="found-model">
      <p>
        <strong>{visible(title)}</strong> {isCurrent && <Badge tone="good">in use</Badge>}{' '}
        <span className="hint">
          {key_variable === null ? (
            <>at {visible(url)}</>
          ) : (
            <>
              key in <code>{visible(key_variable)}</code>
            </>
          )}
        </span>
      </p>
      {problem !== null && <p className="hint">{visible(problem)}</p>}
      {models.length > 0 && isOpen && (
        <div className="actions">
          <label htmlFor={field} className="unseen">
            Model of {visible(title)}
          </label>
          <select id={field} value={name} onChange={event => setName(event.target.value)}>
            {models.map(model => (
              <option key={model}>{model}</option>
            ))}
          </select>
          <button type="button" className="primary" onClick={use} aria-busy={isBusy}>
            Use
          </button>
        </div>
      )}
      <ErrorText>{error}</ErrorText>
    </li>
  )
}

export const ConnectModelDialog = ({ close, done }: { close: () => void; done: () => void }) => (
  <Dialog title="Connect a model" close={close}>
    <div className="dialog-body">
      <ConnectModel done={done} />
      <p className="hint">
        The model is tried before it is used. Keys stay on the host: no agent and no browser sees them.
      </p>
    </div>
    <div className="dialog-foot">
      <button type="button" onClick={close}>
        Close
      </button>
    </div>
  </Dialog>
)
