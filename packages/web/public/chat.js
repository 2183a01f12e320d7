import { drawApproval } from './approval.js'
import { drawCard, focusIn } from './card.js'
import { arrange, make, visible } from './parts.js'

/**
 * The chat in the browser. Whatever people and agents write is set as text, never as markup; the page's content policy
 * would stop it as well.
 *
 * @typedef {{jid: string, name: string, main: boolean, channel: string, writable: boolean, trigger: string | null,
 *   typing: boolean}} Room
 * @typedef {{key: string, direction: 'in' | 'out', jid: string, kind: 'text' | 'reaction' | 'question' | 'approval',
 *   sender: string | null, text: string, at: string, status: string, error: string | null,
 *   question?: import('./card.js').Card, approval?: import('./approval.js').Approval}} Entry
 * @typedef {{id: string, jid: string, text: string, failed: string | undefined}} Outgoing
 */

const ideas = [
  'remind me in ten seconds to stretch',
  'every weekday at 9:00 ask me what I plan to do today',
  'what is scheduled?',
]
const shownAtMost = 200
/** what one person says within this time stands under one name */
const togetherMs = 120_000
/** a page that nobody looks at gives its connection back: a browser has only six of them for one server */
const hiddenMs = 60_000

/** @param {string} id */
const part = id => document.getElementById(id)
const log = part('log')
const box = part('text')

/** @type {Room[]} */
let rooms = []
/** @type {Room | undefined} */
let room
/** @type {Map<string, Entry>} */
let entries = new Map()
/** @type {Map<string, {state: string, item: Element}>} cards as they are shown, by key */
const cards = new Map()
/** @type {Map<string, Outgoing>} what is on its way to the host */
const outgoing = new Map()
/** @type {Set<string>} */
let typing = new Set()
/** @type {Map<string, number>} */
const unread = new Map()
let assistant = 'Agent'
let older = false
/** @type {Entry[]} what came while the chat was being read */
let arrived = []
/** @type {EventSource | undefined} */
let source
let lastEvent = ''

/** @param {string} path @param {RequestInit} [init] */
async function ask(path, init) {
  const response = await fetch(`/api${path}`, init)
  const answer = await response.json()
  if (response.ok) return answer
  if (response.status === 403 && answer.error?.code === 'forbidden' && !init) show('signed out')
  throw new Error(answer.error?.message ?? `the host answered ${response.status}`)
}

/** @param {'connecting' | 'connected' | 'disconnected' | 'signed out'} state */
function show(state) {
  const element = part('connection')
  element.dataset.state = state
  element.textContent = state
  element.title = state === 'signed out' ? 'Open the link that the daemon printed.' : ''
}

async function loadStatus() {
  const status = await ask('/status')
  assistant = status.assistant
  part('warning').textContent = status.warning ?? ''
  part('warning').hidden = status.warning === null
}

async function loadRooms() {
  rooms = await ask('/chats')
  typing = new Set(rooms.filter(each => each.typing).map(each => each.jid))
  const wanted = decodeURIComponent(location.hash.slice(1)) || room?.jid
  const next = rooms.find(each => each.jid === wanted) ?? rooms[0]
  if (next && next.jid === room?.jid) {
    room = next
    drawRooms()
    return loadEntries()
  }
  drawRooms()
  if (next) return enter(next)
  part('room-name').textContent = 'No chat yet'
  part('room-hint').textContent = 'Add a group with: npx hatchway groups add'
  setWritable(false)
}

/** @param {Room} next */
async function enter(next) {
  room = next
  entries = new Map()
  cards.clear()
  unread.delete(next.jid)
  history.replaceState(null, '', `#${encodeURIComponent(next.jid)}`)
  part('rooms').classList.remove('open')
  part('menu').setAttribute('aria-expanded', 'false')
  drawRooms()
  drawEntries()
  await loadEntries()
  box.focus()
}

async function loadEntries() {
  const wanted = room
  if (!wanted) return
  arrived = []
  const answer = await ask(`/chats/${encodeURIComponent(wanted.jid)}/messages?limit=${shownAtMost}`)
  if (wanted.jid !== room?.jid) return
  older = answer.more
  const later = arrived.filter(entry => entry.jid === wanted.jid)
  entries = new Map([...answer.entries, ...later].map(entry => [entry.key, entry]))
  drawEntries()
  log.scrollTop = log.scrollHeight
}

/** @param {boolean} can */
function setWritable(can) {
  part('send').disabled = !can
  box.disabled = !can
}

function drawRooms() {
  document.body.classList.toggle('alone', rooms.length < 2)
  part('room-list').replaceChildren(
    ...rooms.map(each => {
      const item = make('li')
      const button = make('button')
      button.type = 'button'
      button.append(make('span', 'name', each.name))
      const count = unread.get(each.jid) ?? 0
      if (count > 0) button.append(make('span', 'count', String(count)))
      else if (typing.has(each.jid)) button.append(make('span', 'hint', '…'))
      if (each.jid === room?.jid) button.setAttribute('aria-current', 'true')
      button.addEventListener('click', () => enter(each))
      item.append(button)
      return item
    }),
  )
  const all = [...unread.values()].reduce((sum, count) => sum + count, 0)
  document.title = `${all > 0 ? `(${all}) ` : ''}${room ? `${room.name} · ` : ''}Hatchway`
  if (!room) return
  part('room-name').textContent = room.name
  part('room-hint').textContent = !room.writable
    ? `This chat is in ${room.channel}; it can only be read here.`
    : room.trigger === null
      ? ''
      : `The agent answers to ${room.trigger}`
  setWritable(room.writable)
  part('typing').hidden = !typing.has(room.jid)
  part('typing-who').textContent = `${assistant} is writing`
  part('greeting').textContent = `${assistant} is here`
}

const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' })
const calendar = new Intl.DateTimeFormat(undefined, { weekday: 'long', day: 'numeric', month: 'long' })

function drawEntries() {
  const isAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 80
  const sorted = [...entries.values()].sort((a, b) => Date.parse(a.at) - Date.parse(b.at))
  const items = []
  let day = ''
  /** @type {Entry | undefined} */
  let before
  for (const entry of sorted) {
    const date = new Date(entry.at)
    const itsDay = calendar.format(date)
    const isNewDay = itsDay !== day
    if (isNewDay) items.push(make('li', 'day', itsDay))
    day = itsDay
    const isMore = !isNewDay && before !== undefined && goesOn(before, entry)
    items.push(
      entry.question || entry.approval ? cardOf(entry, date, isMore) : drawEntry(entry, date, isMore),
    )
    before = entry
  }
  for (const each of outgoing.values()) if (each.jid === room?.jid) items.push(drawOutgoing(each))
  const active = document.activeElement
  // Whoever tapped on it has no use for a keyboard that comes up.
  const key = active?.matches(':focus-visible') ? active.closest('.entry:has(.card)')?.dataset.key : undefined
  arrange(part('entries'), items)
  if (key !== undefined && !active.isConnected) {
    const card = cards.get(key)?.item
    if (!card?.isConnected || !focusIn(card, active.id)) box.focus({ preventScroll: true })
  }
  part('older').hidden = !older
  part('empty').hidden = items.length > 0 || !room?.writable
  if (isAtEnd) log.scrollTop = log.scrollHeight
}

/** @param {Entry} before @param {Entry} entry */
const goesOn = (before, entry) =>
  before.direction === entry.direction &&
  before.sender === entry.sender &&
  Date.parse(entry.at) - Date.parse(before.at) < togetherMs

/** A card that has not changed stays the same element. @param {Entry} entry @param {Date} date @param {boolean} isMore */
function cardOf(entry, date, isMore) {
  const state = JSON.stringify([entry, isMore, room?.writable])
  const known = cards.get(entry.key)
  if (known?.state === state) return known.item
  const item = drawEntry(entry, date, isMore)
  cards.set(entry.key, { state, item })
  return item
}

/** @param {string} path @param {object} body */
const send = (path, body) =>
  ask(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })

/** What has become of a card. While events come, they bring it, in the order in which it happened. */
function showCard(key, card) {
  const entry = entries.get(key)
  if (source?.readyState === EventSource.OPEN || !entry) return
  entries.set(key, { ...entry, ...card })
  drawEntries()
}

/** @param {Entry} entry @param {number} question @param {{option: number} | {text: string}} answer */
async function choose({ key, jid, question: { id } }, question, answer) {
  const path = `/chats/${encodeURIComponent(jid)}/questions/${id}`
  showCard(key, { question: await send(path, { question, ...answer }) })
}

/** @param {Entry} entry */
function drawQuestionOrApproval(entry) {
  const { key, jid, question, approval } = entry
  if (question) return drawCard(question, room?.writable === true, (...choice) => choose(entry, ...choice))
  const path = `/chats/${encodeURIComponent(jid)}/approvals/${approval.id}`
  return drawApproval(approval, assistant, {
    async decide(decision, words) {
      const said = words?.trim() ? { words } : {}
      showCard(key, { approval: await send(path, { decision, ...said }) })
    },
    whole: () => ask(path),
  })
}

/** @param {Entry} entry @param {Date} date @param {boolean} isMore */
function drawEntry(entry, date, isMore) {
  const isOwn = entry.direction === 'in'
  const isFailed = entry.status === 'failed'
  const item = make(
    'li',
    `entry ${isOwn ? 'own' : ''} ${entry.kind} ${isFailed ? 'failed' : ''} ${isMore ? 'more' : ''}`,
  )
  const about = make('div', 'about')
  about.append(
    make('span', 'who', isOwn && entry.sender === 'Operator' ? 'You' : visible(entry.sender ?? assistant)),
  )
  const time = make('time', '', clock.format(date))
  time.dateTime = entry.at
  time.title = date.toLocaleString()
  about.append(time)
  item.dataset.key = entry.key
  item.append(
    about,
    entry.question || entry.approval
      ? drawQuestionOrApproval(entry)
      : make('div', 'words', visible(entry.text)),
  )
  if (isFailed) item.append(make('div', 'fate', `not delivered: ${entry.error ?? ''}`))
  else if (entry.status === 'pending' && entry.error) {
    item.append(make('div', 'fate', `not delivered yet: ${entry.error}`))
  }
  return item
}

/** @param {Outgoing} message */
function drawOutgoing(message) {
  const item = make('li', `entry own ${message.failed === undefined ? '' : 'failed'}`)
  const fate = make('div', 'fate', message.failed ?? 'sending')
  if (message.failed !== undefined) {
    const again = make('button', 'again', 'Try again')
    again.type = 'button'
    again.addEventListener('click', () => deliver({ ...message, failed: undefined }))
    fate.append(' ', again)
  }
  item.append(make('div', 'words', message.text), fate)
  return item
}

/** @param {Outgoing} message */
async function deliver(message) {
  outgoing.set(message.id, message)
  drawEntries()
  log.scrollTop = log.scrollHeight
  try {
    // Under the same id it is taken once, however often it has to be sent.
    const { text, id } = message
    await send(`/chats/${encodeURIComponent(message.jid)}/messages`, { text, id })
    outgoing.delete(message.id)
    if (source?.readyState !== EventSource.OPEN) await loadEntries()
  } catch (error) {
    outgoing.set(message.id, { ...message, failed: error instanceof Error ? error.message : 'not sent' })
  }
  drawEntries()
}

/** @param {Entry} entry */
function onEntry(entry) {
  arrived.push(entry)
  if (arrived.length > shownAtMost) arrived.shift()
  if (entry.jid === room?.jid) {
    if (entry.direction === 'in') {
      const own = [...outgoing.values()].find(each => each.jid === entry.jid && each.text === entry.text)
      if (own) outgoing.delete(own.id)
    }
    entries.set(entry.key, entry)
    drawEntries()
    if (document.visibilityState === 'visible') return
  }
  // A card that changes was counted when it came.
  const { status, answers = [] } = entry.question ?? entry.approval ?? { status: 'open' }
  const isNew = status === 'open' && answers.every(answer => answer === null)
  if (entry.direction === 'out' && isNew) unread.set(entry.jid, (unread.get(entry.jid) ?? 0) + 1)
  drawRooms()
}

/** @param {MessageEvent<string>} message */
async function onEvent(message) {
  lastEvent = message.lastEventId
  const event = JSON.parse(message.data)
  switch (event.kind) {
    case 'hello':
      typing = new Set(event.typing)
      if (!event.complete || rooms.length === 0) await loadRooms()
      drawRooms()
      return
    case 'entry':
      return onEntry(event.entry)
    case 'typing':
      if (event.on) typing.add(event.jid)
      else typing.delete(event.jid)
      drawRooms()
      if (event.jid === room?.jid) drawEntries()
      return
    case 'chats':
      return loadRooms()
  }
}

function connect() {
  source?.close()
  show('connecting')
  source = new EventSource(`/api/events${lastEvent === '' ? '' : `?after=${encodeURIComponent(lastEvent)}`}`)
  source.addEventListener('open', () => {
    show('connected')
    loadStatus().catch(() => show('disconnected'))
  })
  source.addEventListener('message', message => onEvent(message).catch(() => show('disconnected')))
  source.addEventListener('error', () => {
    show('disconnected')
    if (source?.readyState !== EventSource.CLOSED) return
    // After an answer that was no stream the browser gives up; asking once tells whether it still knows us.
    ask('/status').catch(() => undefined)
    setTimeout(connect, 5000)
  })
}

let hidden = 0
document.addEventListener('visibilitychange', () => {
  clearTimeout(hidden)
  if (document.visibilityState === 'hidden') {
    hidden = setTimeout(() => {
      source?.close()
      show('disconnected')
    }, hiddenMs)
    return
  }
  if (room) unread.delete(room.jid)
  drawRooms()
  if (source?.readyState === EventSource.CLOSED) connect()
})

part('ideas').replaceChildren(
  ...ideas.map(idea => {
    const item = make('li')
    const button = make('button', 'idea', idea)
    button.type = 'button'
    button.addEventListener('click', () => {
      box.value = idea
      box.focus()
    })
    item.append(button)
    return item
  }),
)

part('form').addEventListener('submit', event => {
  event.preventDefault()
  const text = box.value
  if (text.trim() === '' || !room) return
  box.value = ''
  deliver({ id: crypto.randomUUID(), jid: room.jid, text, failed: undefined })
})
box.addEventListener('keydown', event => {
  // While a letter is being composed, Enter belongs to the input method.
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
  event.preventDefault()
  part('form').requestSubmit()
})
part('menu').addEventListener('click', () => {
  const isOpen = part('rooms').classList.toggle('open')
  part('menu').setAttribute('aria-expanded', String(isOpen))
  if (isOpen) part('room-list').querySelector('button')?.focus()
})
document.addEventListener('keydown', event => {
  if (event.key !== 'Escape') return
  part('rooms').classList.remove('open')
  part('menu').setAttribute('aria-expanded', 'false')
})
window.addEventListener('hashchange', () => {
  const next = rooms.find(each => each.jid === decodeURIComponent(location.hash.slice(1)))
  if (next && next.jid !== room?.jid) enter(next)
})

connect()
