import { make, visible } from './parts.js'

/**
 * Something an agent is not to do without a person: allowed or denied with a click. To allow it always takes a second
 * one, with everything in sight that will be allowed.
 *
 * @typedef {{fields: {name: string, text: string}[], more: number}} Shown
 * @typedef {{id: string, action: {name: string, summary: string, payload: Shown}, why: string,
 *   status: 'open' | 'allowed' | 'denied' | 'expired' | 'withdrawn', decided_by: string | null, words: string | null,
 *   always: boolean, expires_at: string, can_decide: boolean}} Approval
 * @typedef {{decide(decision: 'allow' | 'deny' | 'always', words?: string): Promise<void>,
 *   whole(): Promise<{group: string, whole: Shown | null}>}} Ways
 */

/** @type {Map<string, string>} what is being written, by the approval's id: a card is drawn anew when it changes */
const drafts = new Map()
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' })

/** @param {Approval} approval @param {string} assistant @param {Ways} ways */
export function drawApproval(approval, assistant, ways) {
  const element = make('div', `card ${approval.status}`)
  const wants = make('p', 'wants', `${assistant} wants to `)
  wants.append(make('strong', '', visible(approval.action.summary)))
  element.append(wants, drawPayload(approval, ways))
  element.append(make('p', 'why', `You are asked because: ${visible(approval.why)}`))
  const trouble = make('p', 'trouble')
  trouble.setAttribute('role', 'alert')
  if (approval.status === 'open') {
    const until = clock.format(new Date(approval.expires_at))
    element.append(make('p', 'until', `If nobody decides by ${until}, it is not done.`))
    element.append(
      approval.can_decide
        ? drawDecision(approval, ways, trouble)
        : make('p', 'ending', 'Others decide this.'),
    )
  } else {
    drafts.delete(approval.id)
    element.append(drawEnding(approval))
  }
  element.append(trouble)
  return element
}

/** Some of what is in it, and all of it for whoever wants to see that. @param {Approval} approval @param {Ways} ways */
function drawPayload({ status, action: { payload } }, ways) {
  const box = make('div')
  box.append(drawShown(payload))
  if (payload.more === 0) return box
  const rest = make('p', 'hint', `… and ${payload.more} characters more `)
  box.append(rest)
  if (status !== 'open') return box
  const button = make('button', 'again', 'Show all')
  button.type = 'button'
  button.addEventListener('click', async () => {
    try {
      const { whole } = await ways.whole()
      if (whole) box.replaceChildren(drawWhole(whole))
    } catch (error) {
      rest.textContent = error instanceof Error ? visible(error.message) : 'It could not be read.'
    }
  })
  rest.append(button)
  return box
}

/** All of it, however long: how much there is stands below, so that nobody takes its beginning for all. */
function drawWhole(shown) {
  const box = make('div')
  const list = drawShown(shown)
  list.classList.add('whole')
  list.tabIndex = 0
  list.setAttribute('role', 'region')
  list.setAttribute('aria-label', 'All that is in it')
  const count = shown.fields.reduce((sum, { text }) => sum + text.length, 0)
  box.append(list, make('p', 'hint', `${count} characters in all`))
  return box
}

/** @param {Shown} shown */
function drawShown({ fields }) {
  const box = make('div', 'shown')
  const list = make('dl')
  for (const { name, text } of fields)
    list.append(make('dt', '', visible(name)), make('dd', '', visible(text)))
  box.append(list)
  return box
}

/** @param {Approval} approval */
function drawEnding({ status, decided_by, words, always }) {
  if (status === 'expired') return make('p', 'ending', 'Nobody decided in time, so it was not done.')
  if (status === 'withdrawn') return make('p', 'ending', 'This is no longer needed.')
  const line = make('p', 'given')
  const by = visible(decided_by ?? 'somebody')
  const verb = status === 'allowed' ? 'Allowed' : 'Denied'
  line.append(make('span', 'who', `${verb} by ${by}${words === null ? '' : ': '}`))
  if (words !== null) line.append(visible(words))
  if (always) line.append(', from now on without asking')
  return line
}

/** @param {Approval} approval @param {Ways} ways @param {HTMLElement} trouble */
function drawDecision(approval, ways, trouble) {
  const { id, action } = approval
  const field = make('fieldset', 'decision')
  field.append(make('legend', 'unseen', visible(action.summary)))

  /** @param {() => Promise<void>} work */
  const attempt = async work => {
    // Not disabled meanwhile, which would take the keyboard's place away.
    if (field.ariaBusy === 'true') return
    field.ariaBusy = 'true'
    trouble.textContent = ''
    try {
      await work()
    } catch (error) {
      trouble.textContent = error instanceof Error ? visible(error.message) : 'It could not be decided.'
    }
    field.ariaBusy = 'false'
  }
  /** @param {string} part @param {string} label @param {() => Promise<void>} work */
  const button = (part, label, work) => {
    const made = make('button', part, label)
    made.type = 'button'
    made.id = `approval-${id}-${part}`
    made.addEventListener('click', () => attempt(work))
    return made
  }

  const words = make('input')
  words.type = 'text'
  words.id = `approval-${id}-words`
  words.maxLength = 500
  words.autocomplete = 'off'
  words.placeholder = 'Why not, for the agent'
  words.value = drafts.get(id) ?? ''
  words.setAttribute('aria-label', 'Why not, for the agent')
  words.addEventListener('input', () => drafts.set(id, words.value))
  const form = make('form', 'own')
  form.append(words)
  form.addEventListener('submit', event => {
    event.preventDefault()
    // Whoever presses Enter here has said why not.
    if (words.value.trim() !== '') attempt(() => ways.decide('deny', words.value))
  })

  const sure = make('div', 'sure')
  sure.hidden = true
  const choices = make('div', 'choices')
  const more = button('more', 'Allow always…', async () => {
    const { group, whole } = await ways.whole()
    const all = whole ?? action.payload
    const says = `From now on, and until the rule is revoked, the group ${visible(group)} may do exactly this without asking: `
    const what = make('p', '', says)
    what.append(make('code', '', visible(action.name)))
    // What cannot be shown whole cannot be allowed for ever.
    const yes = all.more > 0 ? [] : [button('always', 'Allow always', () => ways.decide('always'))]
    const row = make('div', 'choices')
    const back = button('back', 'Back', async () => {
      sure.hidden = true
      choices.hidden = form.hidden = false
      more.focus({ preventScroll: true })
    })
    row.append(...yes, back)
    sure.replaceChildren(what, drawWhole(all), row)
    sure.hidden = false
    choices.hidden = form.hidden = true
    back.focus({ preventScroll: true })
    sure.scrollIntoView({ block: 'nearest' })
  })
  choices.append(
    button('allow', 'Allow', () => ways.decide('allow')),
    button('deny', 'Deny', () => ways.decide('deny', words.value)),
    more,
  )
  field.append(choices, form, sure)
  return field
}
