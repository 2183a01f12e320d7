/** What is meant for the host's services: things to remember, things to do, the calendar. */
export type ServiceIntent =
  | { kind: 'remember'; text: string }
  /** an empty text: all there is */
  | { kind: 'recall'; about: string }
  | { kind: 'forget'; what: string }
  | { kind: 'todos' }
  | { kind: 'add_todo'; text: string }
  | { kind: 'done'; what: string }
  | { kind: 'calendar'; span: 'today' | 'tomorrow' | 'week' }
  | { kind: 'never_mind' }
  | { kind: 'problem'; message: string }

const todo = 'to-?dos?'
const whose = '(?:(?:the|my|our|your|all)\\s+)*'

type Reading = readonly [RegExp, (...groups: string[]) => ServiceIntent]

const readings: readonly Reading[] = [
  [/^(?:forget (?:it|that|about it)|never ?mind)$/i, () => ({ kind: 'never_mind' })],
  [
    /^forget(?: everything| all.*)?$/i,
    () => ({ kind: 'problem', message: 'Say what to forget: “forget the code of the door”.' }),
  ],
  [
    /^forget(?: about| what i (?:said|told you) about| that| the note(?: about| that)?)? (.+)$/i,
    what => ({ kind: 'forget', what }),
  ],

  [
    /^(?:what (?:do|did) (?:you|we|i) (?:remember|know|note)|do you remember(?: anything)?)(?: (?:about|of|on) (.+))?$/i,
    about => ({ kind: 'recall', about }),
  ],
  [/^do you remember (?:what i (?:said|told you) about )?(.+)$/i, about => ({ kind: 'recall', about })],
  [
    /^recall(?: (?:what (?:you|we) (?:know|remember)|the (?:notes?|memor(?:y|ies))))?(?: (?:about|of|on))? (.+)$/i,
    about => ({ kind: 'recall', about }),
  ],
  [
    new RegExp(`^(?:(?:list|show|recall|what are)\\s+)?(?:me\\s+)?${whose}(?:memories|notes)$`, 'i'),
    () => ({ kind: 'recall', about: '' }),
  ],
  [
    /^(?:remember|note(?: down)?|memori[sz]e|keep in mind|(?:make|take) a note)(?: for me)?(?: this)?(?: that |\s*[:,]\s*)(.+)$/i,
    text => ({ kind: 'remember', text }),
  ],
  [/^note to self\s*[:,]?\s*(.+)$/i, text => ({ kind: 'remember', text })],
  // “Remember to …” is a reminder without a time, and “remember when …” tells nothing.
  [
    /^(?:remember|memori[sz]e) (?!(?:to|me|us|what|when|who|where|which|how|why|if|whether)\b)(.+)$/i,
    text => ({ kind: 'remember', text }),
  ],

  [
    new RegExp(
      `^(?:(?:list|show|see|give|tell|what are|what(?:'s| is) on)\\s+)?(?:me\\s+)?${whose}(?:open\\s+)?(?:${todo}(?:\\s+list)?|things to do)$`,
      'i',
    ),
    () => ({ kind: 'todos' }),
  ],
  [
    /^(?:what(?:'s| is) on (?:my|our|the) list|(?:show (?:me )?)?(?:my|our) list|what (?:is there|do (?:i|we) have) to do)$/i,
    () => ({ kind: 'todos' }),
  ],
  [
    new RegExp(
      `^(?:add|put)\\s+(.+?)\\s+(?:to|on|onto)\\s+(?:my|our|the)\\s+(?:${todo}|(?:${todo}\\s+)?list)$`,
      'i',
    ),
    text => ({ kind: 'add_todo', text }),
  ],
  [
    new RegExp(
      `^(?:add|create|make|new)\\s+(?:an?\\s+)?(?:new\\s+)?${todo}\\b\\s*[:,]?\\s*(?:to\\s+|that\\s+)?(.+)$`,
      'i',
    ),
    text => ({ kind: 'add_todo', text }),
  ],
  [/^mark\s+(.+?)\s+(?:as\s+)?(?:done|complete|completed|finished)$/i, what => ({ kind: 'done', what })],
  [
    /^(?:i(?:'m| am|'ve| have)?\s+)?(?:done|complete|completed|finish|finished|(?:tick|check|cross) off)(?: with)?\s+(.+)$/i,
    what => ({ kind: 'done', what }),
  ],

  [
    /^(?:(?:what(?:'s| is)|show(?: me)?|list|tell me|(?:is there|do i have|have i) (?:anything|something))\s+)?(?:on\s+|in\s+)?(?:(today|tomorrow|this week)'s\s+)?(?:my\s+|our\s+|the\s+)?(?:calendar|agenda|appointments|events)(?:\s+(?:for\s+|on\s+)?(today|tomorrow|this week|the week))?$/i,
    (before, after) => ({ kind: 'calendar', span: spanOf(before || after || '') }),
  ],
]

const spanOf = (words: string): 'today' | 'tomorrow' | 'week' => {
  const said = words.toLowerCase()
  return said === 'today' || said === 'tomorrow' ? said : 'week'
}

/** The name of what is done: “the todo number 2” is 2. */
const subject = new RegExp(`^${whose}(?:${todo}\\s+)?(?:(?:number|no\\.?)\\s*|#)?`, 'i')

export function understandService(text: string): ServiceIntent | undefined {
  for (const [pattern, read] of readings) {
    const match = pattern.exec(text)
    if (!match) continue
    const intent = read(...match.slice(1).map((group: string | undefined) => group?.trim() ?? ''))
    return intent.kind === 'done'
      ? { ...intent, what: intent.what.replace(subject, '') || intent.what }
      : intent
  }
  return undefined
}
