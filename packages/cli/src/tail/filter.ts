import type { Decision, Row } from './row.ts'

export interface Filter {
  /** group, type: a part of the name, or after = the exact name */
  group: string
  type: string
  decision: Decision | 'all'
  text: string
}

export const everything: Filter = { group: '', type: '', decision: 'all', text: '' }

const isNamed = (name: string, wanted: string): boolean =>
  wanted.startsWith('=')
    ? name.toLowerCase() === wanted.slice(1).toLowerCase()
    : name.toLowerCase().includes(wanted.toLowerCase())

export function matches(row: Row, { group, type, decision, text }: Filter): boolean {
  if (decision !== 'all' && row.decision !== decision) return false
  if (!isNamed(row.group, group) || !isNamed(row.type, type)) return false
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
export function filterInWords({ group, type, decision, text }: Filter): string {
  const named = (field: string, wanted: string) =>
    wanted.startsWith('=') ? `${field} ${wanted.slice(1)}` : `${field} contains ${wanted}`
  const words = [
    ...(group === '' ? [] : [named('group', group)]),
    ...(type === '' ? [] : [named('type', type)]),
    ...(decision === 'all' ? [] : [`${decision} only`]),
    ...(text === '' ? [] : [`text contains “${text}”`]),
  ]
  return words.length === 0 ? 'all commands' : words.join(', ')
}
