import { type ReactNode, useEffect, useId, useRef } from 'react'
import { go } from '../shell/route.ts'
import { Icon, type IconName } from './icon.tsx'
import { visible } from './text.ts'

/** What every page is made of. */
export type Tone = 'good' | 'bad' | 'warn' | 'plain' | 'mark'

export const Badge = ({ tone = 'plain', children }: { tone?: Tone; children: ReactNode }) => (
  <span className={`badge ${tone}`}>{children}</span>
)

/** Says what to do next. */
export const Empty = ({ icon, title, children }: { icon: IconName; title: string; children?: ReactNode }) => (
  <div className="nothing">
    <Icon name={icon} size={40} />
    <h2>{title}</h2>
    {children}
  </div>
)

export const ErrorText = ({ children }: { children: string | undefined }) => (
  <p className="error" role="alert">
    {children}
  </p>
)

interface PageProps {
  title: string
  hint?: ReactNode
  actions?: ReactNode
  children: ReactNode
}

export function PageFrame({ title, hint, actions, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Hatchway`
  }, [title])
  return (
    <div className="page">
      <header className="page-head">
        <div>
          <h1>{title}</h1>
          {hint !== undefined && <p className="hint">{hint}</p>}
        </div>
        {actions !== undefined && <div className="actions">{actions}</div>}
      </header>
      {children}
    </div>
  )
}

/** One thing of a list, opened beside it. Escape closes it, and the keyboard goes back to where it was. */
export function Panel({ title, back, children }: { title: ReactNode; back: string; children: ReactNode }) {
  const heading = useRef<HTMLHeadingElement>(null)
  const name = useId()
  useEffect(() => {
    const before = document.activeElement
    heading.current?.focus({ preventScroll: true })
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus({ preventScroll: true })
    }
  }, [])
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== 'Escape' || event.defaultPrevented || document.querySelector('dialog[open]')) return
      event.preventDefault()
      go(back)
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [back])
  return (
    <aside className="panel" aria-labelledby={name}>
      <header>
        <h2 id={name} ref={heading} tabIndex={-1}>
          {title}
        </h2>
        <a className="button quiet" href={back} aria-label="Close" title="Close (Esc)">
          <Icon name="close" />
        </a>
      </header>
      <div className="panel-body">{children}</div>
    </aside>
  )
}

interface DialogProps {
  title: string
  close: () => void
  children: ReactNode
}

export function Dialog({ title, close, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null)
  const name = useId()
  useEffect(() => {
    const before = document.activeElement
    const dialog = element.current
    dialog?.showModal()
    return () => {
      dialog?.close()
      if (before instanceof HTMLElement && before.isConnected) before.focus({ preventScroll: true })
    }
  }, [])
  return (
    <dialog
      ref={element}
      aria-labelledby={name}
      onCancel={event => {
        event.preventDefault()
        close()
      }}
    >
      <header>
        <h2 id={name}>{title}</h2>
        <button type="button" className="quiet" onClick={close} aria-label="Close">
          <Icon name="close" />
        </button>
      </header>
      {children}
    </dialog>
  )
}

interface ConfirmProps {
  title: string
  action: string
  isBusy: boolean
  error: string
  confirm: () => void
  close: () => void
  children: ReactNode
}

export const Confirm = ({ title, action, isBusy, error, confirm, close, children }: ConfirmProps) => (
  <Dialog title={title} close={close}>
    <div className="dialog-body">{children}</div>
    <ErrorText>{error}</ErrorText>
    <div className="dialog-foot">
      <button type="button" onClick={close}>
        Cancel
      </button>
      <button type="button" className="danger" onClick={confirm} aria-busy={isBusy}>
        {action}
      </button>
    </div>
  </Dialog>
)

interface FieldProps {
  label: string
  hint?: string
  children: (id: string) => ReactNode
}

export function Field({ label, hint, children }: FieldProps) {
  const id = useId()
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children(id)}
      {hint !== undefined && <p className="hint">{hint}</p>}
    </div>
  )
}

interface TextFieldProps extends Omit<FieldProps, 'children'> {
  value: string
  change: (text: string) => void
  most: number
  placeholder?: string
  required?: boolean
  type?: 'text' | 'password'
  autoComplete?: string
}

/** A line of text. */
export const TextField = ({ label, hint, value, change, most, ...input }: TextFieldProps) => (
  <Field label={label} {...(hint === undefined ? {} : { hint })}>
    {id => (
      <input
        id={id}
        maxLength={most}
        value={value}
        onChange={event => change(event.target.value)}
        {...input}
      />
    )}
  </Field>
)

/** Name and value, name and value. */
export const Facts = ({ facts }: { facts: readonly (readonly [string, ReactNode])[] }) => (
  <dl className="facts">
    {facts.map(([name, value]) => (
      <div key={name}>
        <dt>{name}</dt>
        <dd>{value}</dd>
      </div>
    ))}
  </dl>
)

/** Before there is anything to show: that it comes, or why it does not. */
export const Waiting = ({ value, error }: { value: unknown; error: string | undefined }) =>
  error !== undefined ? <ErrorText>{visible(error)}</ErrorText> : !value && <Loading />

/** The head of a table. */
export const Columns = ({ names }: { names: readonly string[] }) => (
  <thead>
    <tr>
      {names.map(name => (
        <th key={name} scope="col">
          {name}
        </th>
      ))}
    </tr>
  </thead>
)

export const Loading = () => <p className="loading">Loading…</p>

/** Long text of others, to be scrolled with the keyboard as well. */
export const Source = ({ label, children }: { label: string; children: string }) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable without a mouse
  <section className="source" tabIndex={0} aria-label={label}>
    <pre>{children}</pre>
  </section>
)
