import type { Decision, Row } from './row.ts'

export interface Filter {
  /** group, type: a part of the name, or all of it behind a = */
  group: string
  type: string
  decision: Decision | 'all'
  text: string
}

export const everything: Filter = { group: '', type: '', decision: 'all', text: '' }

const named = (name: string, wanted: string): boolean =>
  wanted.startsWith('=')
    ? name.toLowerCase() === wanted.slice(1).toLowerCase()
    : name.toLowerCase().includes(wanted.toLowerCase())

export function matches(row: Row, { group, type, decision, text }: Filter): boolean {
  if (decision !== 'all' && row.decision !== decision) return false
  if (group !== '' && !named(row.group, group)) return false
  if (type !== '' && !named(row.type, type)) return false
  if (text === '') return true
  const wanted = text.toLowerCase()
  return [row.message, row.file, row.requestId, row.code, row.type, row.group].some(field =>
    field.toLowerCase().includes(wanted),
  )
}

const decisions: readonly Filter['decision'][] = ['all', 'ok', 'refused', 'open']

export const nextDecision = (decision: Filter['decision']): Filter['decision'] =>
  decisions[(decisions.indexOf(decision) + 1) % decisions.length] ?? 'all'

/** In words, for the line above the list. */
export function wordsOf({ group, type, decision, text }: Filter): string {
  const said = (what: string, wanted: string) =>
    wanted.startsWith('=') ? `${what} is ${wanted.slice(1)}` : `${what} has ${wanted}`
  const words = [
    ...(group === '' ? [] : [said('group', group)]),
    ...(type === '' ? [] : [said('type', type)]),
    ...(decision === 'all' ? [] : [`${decision} only`]),
    ...(text === '' ? [] : [`with “${text}”`]),
  ]
  return words.length === 0 ? 'all commands' : words.join(', ')
}
