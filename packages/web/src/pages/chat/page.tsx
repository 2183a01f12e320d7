import type { Entry, Room } from '@hatchway/host/api-types'
import { type DragEvent, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react'
import { Icon } from '../../parts/icon.tsx'
import { Badge, Empty, Loading } from '../../parts/parts.tsx'
import { visible } from '../../parts/text.ts'
import { useMay } from '../../shell/me.ts'
import { hrefOf, replace, useRoute } from '../../shell/route.ts'
import { Composer } from './composer.tsx'
import { EntryView, LiveTextView, OutgoingView } from './entry.tsx'
import { FirstSteps } from './first-steps.tsx'
import {
  type ChatState,
  cardsIn,
  deliver,
  enterChat,
  leaveChat,
  noteRead,
  toSeeTo,
  useChats,
} from './store.ts'

/** What people and agents say, and where they are asked. */
const ideas = [
  'remind me in ten seconds to stretch',
  'every weekday at 9:00 ask me what I plan to do today',
  'what is scheduled?',
]

export function ChatPage() {
  const { id } = useRoute()
  const chats = useChats()
  const { rooms } = chats
  const room = rooms?.find(({ jid }) => jid === id) ?? rooms?.[0]
  const [isListOpen, setListOpen] = useState(false)

  const jid = room?.jid
  useEffect(() => {
    if (jid === undefined) return
    enterChat(jid)
    // Without the name of a chat in it, the address would lead elsewhere once another chat is the first.
    replace(hrefOf('chat', jid))
    setListOpen(false)
  }, [jid])
  useEffect(() => leaveChat, [])
  useEffect(() => {
    const onVisible = () => document.visibilityState === 'visible' && noteRead()
    document.addEventListener('visibilitychange', onVisible)
    return () => document.removeEventListener('visibilitychange', onVisible)
  }, [])
  useEffect(() => {
    if (!isListOpen) return
    const onKey = (event: KeyboardEvent) => event.key === 'Escape' && setListOpen(false)
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [isListOpen])
  const all = toSeeTo(chats)
  const name = room && visible(room.name)
  useEffect(() => {
    document.title = `${all > 0 ? `(${all}) ` : ''}${name === undefined ? '' : `${name} · `}Hatchway`
  }, [all, name])

  if (rooms === undefined) return <Loading />
  if (!room) {
    return (
      <div className="page">
        <h1>Chat</h1>
        <Empty icon="chat" title="No chat yet">
          <p>
            A group has a chat. <a href={hrefOf('groups')}>Add a group</a>, or in a terminal:{' '}
            <code>npx hatchway groups add</code>
          </p>
        </Empty>
      </div>
    )
  }
  return (
    <div className={`chat ${rooms.length < 2 ? 'alone' : ''}`}>
      <Rooms chats={chats} rooms={rooms} room={room} isOpen={isListOpen} />
      {isListOpen && (
        <button
          type="button"
          className="scrim"
          aria-label="Close the list of chats"
          onClick={() => setListOpen(false)}
        />
      )}
      <Conversation
        key={room.jid}
        room={room}
        chats={chats}
        isListOpen={isListOpen}
        toggleList={() => setListOpen(!isListOpen)}
      />
    </div>
  )
}

interface RoomsProps {
  chats: ChatState
  rooms: readonly Room[]
  room: Room
  isOpen: boolean
}

const Rooms = ({ chats, rooms, room, isOpen }: RoomsProps) => (
  <nav id="rooms" className={`rooms ${isOpen ? 'open' : ''}`} aria-label="Chats">
    <ul>
      {rooms.map(each => {
        const { jid, name } = each
        const count = chats.unread.get(jid) ?? 0
        const cards = cardsIn(each)
        return (
          <li key={jid}>
            <a href={hrefOf('chat', jid)} aria-current={jid === room.jid ? 'page' : undefined}>
              <span className="name">{visible(name)}</span>
              {cards > 0 && <Badge tone="warn">{cards} waiting</Badge>}
              {count > 0 && (
                <span className="count">
                  {count}
                  <span className="unseen"> unread</span>
                </span>
              )}
              {count === 0 && chats.typing.has(jid) && <span className="hint">…</span>}
            </a>
          </li>
        )
      })}
    </ul>
  </nav>
)

const hintOf = (room: Room) =>
  !room.writable
    ? `This chat is in ${visible(room.channel)}; it can only be read here.`
    : room.trigger === null
      ? ''
      : `The agent answers to ${visible(room.trigger)}`

interface ConversationProps {
  room: Room
  chats: ChatState
  isListOpen: boolean
  toggleList: () => void
}

const closeToEnd = 80

function Conversation({ room, chats, isListOpen, toggleList }: ConversationProps) {
  const { entries, outgoing, status } = chats
  const assistant = status?.assistant ?? 'Agent'
  const log = useRef<HTMLDivElement>(null)
  const box = useRef<HTMLTextAreaElement>(null)
  const isAtEnd = useRef(true)
  const [idea, setIdea] = useState({ text: '', turn: 0 })
  const [dropped, setDropped] = useState<{ files: readonly File[]; turn: number }>({ files: [], turn: 0 })
  const [isDropping, setDropping] = useState(false)
  const canWrite = useMay('approver') && room.writable
  const isAdmin = useMay('admin')
  const largest = status?.attachment_bytes ?? 0
  const live = chats.liveTexts.get(room.jid)

  const toEnd = useCallback(() => {
    if (log.current) log.current.scrollTop = log.current.scrollHeight
  }, [])
  /** A picture that came in takes its place below what was the end. */
  const grown = useCallback(() => {
    if (isAtEnd.current) toEnd()
  }, [toEnd])
  const toBox = useCallback(() => box.current?.focus({ preventScroll: true }), [])

  // biome-ignore lint/correctness/useExhaustiveDependencies: what is shown has grown
  useLayoutEffect(grown, [entries, outgoing, live, chats.typing, grown])
  useEffect(() => {
    // A keyboard that comes up by itself hides the chat on a phone.
    if (matchMedia('(hover: hover)').matches) toBox()
  }, [toBox])

  const days = useMemo(() => daysOf(entries), [entries])
  const last = days.at(-1)?.items.at(-1)?.entry
  const sending = [...outgoing.values()].filter(({ jid }) => jid === room.jid)
  const isEmpty = chats.isLoaded && entries.size === 0 && sending.length === 0
  const hasFiles = (event: DragEvent) => event.dataTransfer.types.includes('Files') && canWrite && largest > 0

  return (
    <section
      id="room"
      className={`room ${isDropping ? 'dropping' : ''}`}
      aria-labelledby="room-name"
      onDragOver={event => {
        if (!hasFiles(event)) return
        event.preventDefault()
        setDropping(true)
      }}
      onDragLeave={event => {
        const to = event.relatedTarget
        if (!(to instanceof Node && event.currentTarget.contains(to))) setDropping(false)
      }}
      onDrop={event => {
        setDropping(false)
        if (!hasFiles(event)) return
        event.preventDefault()
        const files = [...event.dataTransfer.files]
        setDropped(({ turn }) => ({ files, turn: turn + 1 }))
      }}
    >
      <header className="bar">
        <button
          type="button"
          className="menu quiet"
          aria-controls="rooms"
          aria-expanded={isListOpen}
          onClick={toggleList}
        >
          <Icon name="menu" />
          <span className="unseen">Chats</span>
        </button>
        <div className="title">
          <h1 id="room-name">{visible(room.name)}</h1>
          <p className="hint">{hintOf(room)}</p>
        </div>
        <a className="button quiet" href={hrefOf('runs', undefined, { group: room.folder })}>
          <Icon name="runs" size={16} /> Runs
        </a>
      </header>
      {isAdmin && <FirstSteps />}
      <div
        ref={log}
        className="log"
        role="log"
        aria-label="Messages"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable without a mouse
        tabIndex={0}
        onScroll={({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) => {
          isAtEnd.current = scrollHeight - scrollTop - clientHeight < closeToEnd
        }}
      >
        {chats.error !== undefined && <p className="error">{visible(chats.error)}</p>}
        {chats.older && <p className="older">Older messages are not shown here.</p>}
        {isEmpty && canWrite && (
          <Greeting
            assistant={assistant}
            choose={text => setIdea(({ turn }) => ({ text, turn: turn + 1 }))}
          />
        )}
        {isEmpty && !canWrite && (
          <Empty icon="chat" title="Nothing has been said yet">
            <p>What people and the agent say in this chat is shown here.</p>
          </Empty>
        )}
        <ol className="entries">
          {days.map(({ day, items }) => [
            <li key={day} className="day">
              {day}
            </li>,
            ...items.map(({ entry, isMore }) => (
              <EntryView
                key={entry.key}
                entry={entry}
                isMore={isMore}
                assistant={assistant}
                isWritable={room.writable}
                grown={grown}
                toBox={toBox}
              />
            )),
          ])}
          {sending.map(message => (
            <OutgoingView key={message.id} message={message} />
          ))}
          {live && live.text !== '' && <LiveTextView text={live.text} assistant={assistant} />}
        </ol>
        {canWrite && room.trigger !== null && sending.length === 0 && last?.status === 'context' && (
          <NotCalled room={room} trigger={room.trigger} assistant={assistant} />
        )}
        <p id="typing" className="typing" hidden={!chats.typing.has(room.jid)}>
          <span className="dots" aria-hidden="true">
            <i />
            <i />
            <i />
          </span>
          <span>{live?.tool ? `${assistant} uses ${visible(live.tool)}` : `${assistant} is writing`}</span>
          {canWrite && (
            <button type="button" className="quiet" onClick={() => say(room, '/stop')}>
              Stop
            </button>
          )}
        </p>
      </div>
      <Composer
        room={room}
        canWrite={canWrite}
        largest={largest}
        box={box}
        idea={idea}
        dropped={dropped}
        toBox={toBox}
        sent={() => {
          isAtEnd.current = true
          toEnd()
        }}
      />
    </section>
  )
}

const say = ({ jid }: Room, text: string) =>
  deliver({ id: crypto.randomUUID(), jid, text, files: [], failed: undefined })

/** Why nobody answers. Whoever calls the agent has what was said before read along. */
const NotCalled = ({ room, trigger, assistant }: { room: Room; trigger: string; assistant: string }) => (
  <p className="not-called" role="status">
    {visible(assistant)} was not called: in this chat it answers when you write {visible(trigger)}.{' '}
    <button type="button" className="small" onClick={() => say(room, trigger)}>
      Call {visible(trigger)}
    </button>
  </p>
)

const Greeting = ({ assistant, choose }: { assistant: string; choose: (idea: string) => void }) => (
  <section id="empty" className="greeting">
    <img src="/icon.svg" alt="" width="56" height="56" />
    <h2>{assistant} is here</h2>
    <p>Write below, or begin with one of these:</p>
    <ul>
      {ideas.map(idea => (
        <li key={idea}>
          <button type="button" className="idea" onClick={() => choose(idea)}>
            {idea}
          </button>
        </li>
      ))}
    </ul>
  </section>
)

/** what one person says within this time stands under one name */
const togetherMs = 120_000
const calendar = new Intl.DateTimeFormat(undefined, { weekday: 'long', day: 'numeric', month: 'long' })

interface Day {
  day: string
  items: { entry: Entry; isMore: boolean }[]
}

function daysOf(entries: ReadonlyMap<string, Entry>): Day[] {
  const days: Day[] = []
  let before: Entry | undefined
  for (const entry of [...entries.values()].sort((a, b) => Date.parse(a.at) - Date.parse(b.at))) {
    const name = calendar.format(Date.parse(entry.at))
    const isNewDay = days.at(-1)?.day !== name
    if (isNewDay) days.push({ day: name, items: [] })
    days.at(-1)?.items.push({ entry, isMore: !isNewDay && before !== undefined && goesOn(before, entry) })
    before = entry
  }
  return days
}

const goesOn = (before: Entry, entry: Entry) =>
  before.direction === entry.direction &&
  before.sender === entry.sender &&
  Date.parse(entry.at) - Date.parse(before.at) < togetherMs
