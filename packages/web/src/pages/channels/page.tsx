import type { ChannelState, Pairing } from '@hatchway/host/api-types'
import { useState } from 'react'
import { change } from '../../host/ask.ts'
import { useAction } from '../../live/use-action.ts'
import { useAnswer } from '../../live/use-answer.ts'
import { Badge, Confirm, Empty, PageFrame, Waiting } from '../../parts/parts.tsx'
import { shortly, visible } from '../../parts/text.ts'
import { Time } from '../../parts/time.tsx'
import { announce } from '../../parts/toast.tsx'
import { useMay } from '../../shell/me.ts'
import { AddChannel } from './add-channel.tsx'
import { Confirming } from './confirming.tsx'
import { LetIn } from './let-in.tsx'

/** The chat apps that people reach their agents by, and who asks to be let in. */
export function ChannelsPage() {
  const channels = useAnswer<ChannelState[]>('/api/host/channels', ['status'])
  const pairings = useAnswer<Pairing[]>('/api/host/pairings', ['groups', 'messages'])
  const waiting = (pairings.value ?? []).filter(({ status }) => status === 'open')
  return (
    <PageFrame title="Channels" hint="The chat apps that people reach their agents by">
      <Waiting value={channels.value} error={channels.error} />
      {waiting.length > 0 && (
        <section>
          <h2>Asking to be let in</h2>
          <ul className="cards">
            {waiting.map(pairing => (
              <Asking key={pairing.jid} pairing={pairing} changed={pairings.reload} />
            ))}
          </ul>
        </section>
      )}
      {channels.value?.length === 0 && (
        <Empty icon="channels" title="No chat app">
          <p>This installation has none to add.</p>
        </Empty>
      )}
      <ul className="cards">
        {channels.value?.map(channel => (
          <ChannelCard key={channel.name} channel={channel} changed={channels.reload} />
        ))}
      </ul>
    </PageFrame>
  )
}

function State({ channel }: { channel: ChannelState }) {
  if (!channel.added) return <Badge>not connected yet</Badge>
  if (channel.problem !== null) return <Badge tone="bad">cannot be used</Badge>
  if (channel.confirm !== null) return <Badge tone="warn">waits for you</Badge>
  if (channel.connected === null) return <Badge>added</Badge>
  return channel.connected ? <Badge tone="good">connected</Badge> : <Badge tone="warn">not connected</Badge>
}

function ChannelCard({ channel, changed }: { channel: ChannelState; changed: () => void }) {
  const { name, title, added, since, last_error, problem, limited_until, per_second, waiting, confirm } =
    channel
  const mayChange = useMay('admin')
  const { attempt, isBusy, error } = useAction()
  const [asked, setAsked] = useState<'add' | 'remove'>()
  const path = `/api/host/channels/${encodeURIComponent(name)}`
  const test = async () => {
    if (await attempt(() => change('POST', `${path}/test`))) announce(`${title} lets us in.`)
    changed()
  }
  const remove = async () => {
    if (!(await attempt(() => change('DELETE', path)))) return
    announce(`${title} is removed.`)
    setAsked(undefined)
    changed()
  }
  return (
    <li className="box">
      <h2>{title}</h2>
      <p className="badges">
        <State channel={channel} />
      </p>
      {added && since !== null && (
        <p className="hint">
          Since <Time at={since} />
        </p>
      )}
      {(problem ?? last_error) !== null && (
        <p className="hint">{shortly(problem ?? last_error ?? '', 300)}</p>
      )}
      {limited_until !== null && new Date(limited_until) > new Date() && (
        <p className="hint">
          The platform asks to wait until <Time at={limited_until} />
        </p>
      )}
      {added && per_second !== null && (
        <p className="hint">At most {per_second} messages a second, in all chats together</p>
      )}
      {waiting > 0 && <p className="hint">Chats that wait for their turn: {waiting}</p>}
      {confirm !== null && <Confirming title={title} confirm={confirm} />}
      {mayChange && (
        <div className="actions">
          <button type="button" className={added ? '' : 'primary'} onClick={() => setAsked('add')}>
            {added ? 'Change' : 'Connect'}
          </button>
          {added && (
            <>
              <button type="button" onClick={test} aria-busy={isBusy}>
                Test
              </button>
              <button type="button" className="danger" onClick={() => setAsked('remove')}>
                Remove
              </button>
            </>
          )}
        </div>
      )}
      {asked === undefined && (
        <p className="error" role="alert">
          {error}
        </p>
      )}
      {asked === 'add' && <AddChannel channel={channel} close={() => setAsked(undefined)} done={changed} />}
      {asked === 'remove' && (
        <Confirm
          title={`Remove ${title}?`}
          action={`Remove ${title}`}
          isBusy={isBusy}
          error={error}
          confirm={remove}
          close={() => setAsked(undefined)}
        >
          <p>Its token is forgotten, and nobody is heard there any more. Groups and messages stay.</p>
        </Confirm>
      )}
    </li>
  )
}

function Asking({ pairing, changed }: { pairing: Pairing; changed: () => void }) {
  const { jid, code, name, is_group, sender, sender_name, channel, asked_at, notes } = pairing
  const mayChange = useMay('admin')
  const { attempt, isBusy, error } = useAction()
  const [isOpen, setOpen] = useState(false)
  const refuse = async () => {
    if (!(await attempt(() => change('POST', `/api/host/pairings/${encodeURIComponent(jid)}/deny`)))) return
    announce('Refused. They cannot ask again.')
    changed()
  }
  return (
    <li className="box">
      <h2>{shortly(sender_name, 60)}</h2>
      <p className="hint">
        {visible(channel)} <code>{visible(sender)}</code>
        {is_group && <> in {shortly(name, 60)}</>}
      </p>
      <p className="hint">
        Chat <code>{visible(jid)}</code>, code <code>{code}</code>, asked <Time at={asked_at} />
      </p>
      {notes.map(note => (
        <p key={note} className="note">
          ⚠ {visible(note)}
        </p>
      ))}
      {mayChange && (
        <div className="actions">
          <button type="button" className="primary" onClick={() => setOpen(true)}>
            Let in
          </button>
          <button type="button" className="danger" onClick={refuse} aria-busy={isBusy}>
            Refuse
          </button>
        </div>
      )}
      <p className="error" role="alert">
        {error}
      </p>
      {isOpen && <LetIn pairing={pairing} close={() => setOpen(false)} done={changed} />}
    </li>
  )
}
