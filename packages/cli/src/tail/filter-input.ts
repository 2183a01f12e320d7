import { visible } from '../text.ts'
import { everything, type Filter, nextDecision } from './filter.ts'
import type { Key } from './keys.ts'

const longest = 100

type Field = 'group' | 'type' | 'text'
const fields: Record<Key, Field> = { g: 'group', t: 'type', '/': 'text' }

/** The filter of the list, and its keys. A filter that is being typed applies at once. */
export interface FilterInput {
  current(): Filter
  press(key: Key): void
  /** the field that is being typed, for the last line */
  typed(): string | undefined
}

export function createFilterInput(initial: Partial<Filter>): FilterInput {
  let filter: Filter = { ...everything, ...initial }
  let typing: { field: Field; before: string } | undefined

  const type = (key: Key, { field, before }: { field: Field; before: string }) => {
    const text = filter[field]
    const edits: Record<Key, string> = {
      escape: before,
      backspace: [...text].slice(0, -1).join(''),
      'ctrl-u': '',
    }
    if (key === 'enter' || key === 'escape') typing = undefined
    const isCharacter = [...key].length === 1 && visible(key) === key
    const edited = edits[key] ?? (isCharacter ? text + key : text)
    if (edited !== text) filter = { ...filter, [field]: edited.slice(0, longest) }
  }
  return {
    current: () => filter,
    typed: () => typing && `${typing.field}: ${filter[typing.field]}_`,
    press(key) {
      if (typing) return type(key, typing)
      const field = fields[key]
      if (field) typing = { field, before: filter[field] }
      if (key === 'd') filter = { ...filter, decision: nextDecision(filter.decision) }
      if (key === 'c') filter = everything
    },
  }
}
