import { hash } from 'node:crypto'
import type { Memory, Todo, Tools } from './tools.ts'
import type { ServiceIntent } from './understand-services.ts'
import { eventLine, shortened } from './wording.ts'
import { dayIn } from './zone.ts'

/** What the concierge does with the host's services, and says about it. */
export function createServiceAnswers(reached: () => Tools, zone: () => string) {
  /** as the list was shown last: a number that is said afterwards means that one, whatever has changed meanwhile */
  let shown: readonly Todo[] = []

  const remember = async (text: string): Promise<string> => {
    await reached().saveMemory(keyFor(text), text)
    return `I’ll remember: ${text}`
  }

  const recall = async (about: string): Promise<string> => {
    const memories = about === '' ? await reached().memories() : await reached().recall(about)
    if (memories.length === 0)
      return about === '' ? 'I remember nothing yet.' : 'I remember nothing about that.'
    const told = memories.slice(0, mostTold).map(({ content }) => `• ${cut(content)}`)
    const more = memories.length - told.length
    return [
      'I remember:',
      ...told,
      ...(more > 0 ? [`… and ${more} more. Ask me about one of them.`] : []),
    ].join('\n')
  }

  const forget = async (what: string): Promise<string> => {
    // A name is found by its words.
    const found = await reached().recall(what.replaceAll(/[-_]+/g, ' '))
    const named = found.filter(memory => isNamed(memory, what))
    const [only] = named.length === 1 ? named : []
    const memory =
      only ??
      (found.length === 0
        ? undefined
        : await reached().choose(
            'Which of these am I to forget?',
            found,
            ({ content }) => ({ label: shortened(content) }),
            isNamed,
          ))
    if (memory === 'none') return 'All right, I forget nothing.'
    if (memory) {
      await reached().forget(memory.key)
      return `I have forgotten: ${memory.content}`
    }
    if (found.length === 0) return 'I remember nothing about that.'
    return [
      `Which one? Say it with its name, such as “forget ${found[0]?.key}”.`,
      ...found.map(({ key, content }) => `• ${key}: ${shortened(content)}`),
    ].join('\n')
  }

  const todos = async (): Promise<string> => {
    shown = await reached().todos()
    if (shown.length === 0) return 'There is nothing to do.'
    return [
      shown.length === 1 ? 'There is one thing to do:' : `There are ${shown.length} things to do:`,
      ...shown.map(({ content }, i) => `${i + 1}. ${shortened(content)}`),
    ].join('\n')
  }

  const done = async (what: string): Promise<string> => {
    const open = await reached().todos()
    const fitting = fittingTodos(what, open, shown.length > 0 ? shown : open)
    const [only, ...others] = fitting
    if (!only) return 'I know of no such thing to do. Ask me for the list with “todos”.'
    const todo =
      others.length === 0
        ? only
        : await reached().choose('Which one is done?', fitting, ({ content }) => ({
            label: shortened(content),
          }))
    if (todo === 'none') return 'All right, the list stays as it is.'
    if (todo) return `Done: ${(await reached().completeTodo(todo.id)).content}`
    shown = fitting
    return [
      'Which one? Say it with its number, such as “done 1”.',
      ...fitting.map(({ content }, i) => `${i + 1}. ${shortened(content)}`),
    ].join('\n')
  }

  const calendar = async (span: 'today' | 'tomorrow' | 'week', now: Date): Promise<string> => {
    const first = span === 'tomorrow' ? 1 : 0
    const last = span === 'week' ? 6 : first
    const events = await reached().events(dayIn(now, zone(), first), dayIn(now, zone(), last))
    const when = { today: 'today', tomorrow: 'tomorrow', week: 'in the next seven days' }[span]
    if (events.length === 0) return `There is nothing on the calendar ${when}.`
    return [`On the calendar ${when}:`, ...events.map(event => `• ${eventLine(event, zone(), now)}`)].join(
      '\n',
    )
  }

  return async (intent: ServiceIntent, now: Date): Promise<string> => {
    switch (intent.kind) {
      case 'remember':
        return remember(intent.text)
      case 'recall':
        return recall(intent.about)
      case 'forget':
        return forget(intent.what)
      case 'todos':
        return todos()
      case 'add_todo':
        return `It is on the list: ${(await reached().addTodo(intent.text)).content}`
      case 'done':
        return done(intent.what)
      case 'calendar':
        return calendar(intent.span, now)
      case 'never_mind':
        return 'All right.'
      case 'problem':
        return intent.message
    }
  }
}

/** A chat is no place for more. */
const mostTold = 20
const longestTold = 500
const cut = (text: string): string =>
  text.length > longestTold ? `${text.slice(0, longestTold).toWellFormed()}…` : text

const wordsOf = (text: string): string =>
  (
    text
      .normalize('NFC')
      .toLowerCase()
      .match(/[\p{L}\p{M}\p{N}]+/gu) ?? []
  ).join('-')

const longestKey = 60

/** Made of the words, so that the same said twice is kept once; two that only begin alike are two. */
export function keyFor(text: string): string {
  const words = wordsOf(text)
  if (words !== '' && words.length <= longestKey) return words
  const short = [...words].slice(0, longestKey - 20).join('')
  return `${short || 'note'}-${hash('sha256', text).slice(0, 12)}`
}

const isSaid = (text: string, said: string): boolean =>
  text === said || (wordsOf(said) !== '' && wordsOf(text) === wordsOf(said))

const isNamed = ({ key, content }: Memory, said: string): boolean =>
  isSaid(key, said) || isSaid(content, said)

/** By its number on the list, by its id, by its words, or by some of them. */
function fittingTodos(what: string, open: readonly Todo[], numbered: readonly Todo[]): readonly Todo[] {
  const byNumber = /^\d{1,3}$/.test(what) ? numbered[Number(what) - 1] : undefined
  if (byNumber) return [byNumber]
  const named = open.find(({ id, content }) => id === what.toLowerCase() || isSaid(content, what))
  return named ? [named] : open.filter(({ content }) => content.toLowerCase().includes(what.toLowerCase()))
}
