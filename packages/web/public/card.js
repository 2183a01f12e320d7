import { make, visible } from './parts.js'

/**
 * A question of an agent's, to be answered with a click or in one's own words.
 *
 * @typedef {{answer: string, option: number | null, by: string}} Given
 * @typedef {{question: string, options?: {label: string, description?: string}[]}} Question
 * @typedef {{id: string, questions: Question[], answers: (Given | null)[],
 *   status: 'open' | 'answered' | 'expired' | 'withdrawn'}} Card
 * @typedef {(question: number, answer: {option: number} | {text: string}) => Promise<void>} Choose
 */

const endings = { expired: 'Nobody answered in time.', withdrawn: 'This is no longer needed.' }

/** @type {Map<string, string>} what is being written, by the field's id: a card is drawn anew when it changes */
const drafts = new Map()

/** @param {Card} card @param {boolean} canAnswer @param {Choose} choose */
export function drawCard(card, canAnswer, choose) {
  const element = make('div', `card ${card.status}`)
  const trouble = make('p', 'trouble')
  trouble.setAttribute('role', 'alert')
  const isOpen = card.status === 'open' && canAnswer
  const fields = card.questions.map((question, i) => {
    const given = card.answers[i] ?? null
    const field = make('fieldset')
    field.disabled = !isOpen || given !== null
    const number = card.questions.length > 1 ? `${i + 1}. ` : ''
    field.append(make('legend', '', `${number}${visible(question.question)}`))
    const answer = async choice => {
      // Not disabled meanwhile, which would take the keyboard's place away.
      if (field.ariaBusy === 'true') return
      field.ariaBusy = 'true'
      trouble.textContent = ''
      try {
        await choose(i + 1, choice)
        drafts.delete(idOf(card, i, 'words'))
      } catch (error) {
        field.ariaBusy = 'false'
        trouble.textContent = error instanceof Error ? visible(error.message) : 'It could not be answered.'
      }
    }
    const options = question.options ?? []
    if (options.length > 0) field.append(drawOptions(card, i, options, given, answer))
    if (!field.disabled) field.append(drawOwnWords(card, i, answer))
    if (given) field.append(drawGiven(given))
    return field
  })
  element.append(...fields)
  const ending = endings[card.status]
  if (ending) element.append(make('p', 'ending', ending))
  element.append(trouble)
  return element
}

/** @param {Card} card @param {number} question @param {string | number} part */
const idOf = ({ id }, question, part) => `question-${id}-${question + 1}-${part}`

function drawOptions(card, question, options, given, answer) {
  const list = make('ul', 'options')
  list.append(
    ...options.map(({ label, description }, i) => {
      const item = make('li')
      const button = make('button', 'option')
      button.type = 'button'
      button.id = idOf(card, question, i + 1)
      button.setAttribute('aria-pressed', String(given?.option === i + 1))
      const number = make('span', 'number', String(i + 1))
      const words = make('span', 'label', visible(label))
      if (description) words.append(make('small', '', visible(description)))
      button.append(number, words)
      button.addEventListener('click', () => answer({ option: i + 1 }))
      item.append(button)
      return item
    }),
  )
  return list
}

function drawOwnWords(card, question, answer) {
  const form = make('form', 'own')
  const words = make('input')
  words.type = 'text'
  words.id = idOf(card, question, 'words')
  words.maxLength = 20_000
  words.autocomplete = 'off'
  words.placeholder = 'In your own words'
  words.value = drafts.get(words.id) ?? ''
  words.setAttribute('aria-label', `In your own words: ${visible(card.questions[question].question)}`)
  words.addEventListener('input', () => drafts.set(words.id, words.value))
  const button = make('button', '', 'Answer')
  button.type = 'submit'
  form.append(words, button)
  form.addEventListener('submit', event => {
    event.preventDefault()
    if (words.value.trim() !== '') answer({ text: words.value })
  })
  return form
}

/** @param {Given} given */
function drawGiven({ answer, by }) {
  const line = make('p', 'given')
  line.append(make('span', 'who', `Answered by ${visible(by)}: `), visible(answer))
  return line
}

/** Where the keyboard goes on when the card it was in has been drawn anew. @param {Element} card @param {string} id */
export function focusIn(card, id) {
  const same = [...card.querySelectorAll('input, button')].find(each => each.id === id && !isOff(each))
  const next = same ?? card.querySelector('fieldset:enabled button, fieldset:enabled input')
  next?.focus({ preventScroll: true })
  if (next instanceof HTMLInputElement) next.setSelectionRange(next.value.length, next.value.length)
  return next !== null
}

/** @param {Element} element */
const isOff = element => element.matches(':disabled')
