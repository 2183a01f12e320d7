/** Numbers in words become digits, where they tell a time. Elsewhere they stay: “ten apples” are not a schedule. */
const ones = [
  'zero',
  'one',
  'two',
  'three',
  'four',
  'five',
  'six',
  'seven',
  'eight',
  'nine',
  'ten',
  'eleven',
  'twelve',
  'thirteen',
  'fourteen',
  'fifteen',
  'sixteen',
  'seventeen',
  'eighteen',
  'nineteen',
]
const tens = ['twenty', 'thirty', 'forty', 'fifty', 'sixty', 'seventy', 'eighty', 'ninety']

const values = new Map<string, number>([
  ...ones.map((word, value) => [word, value] as const),
  ...tens.map((word, index) => [word, (index + 2) * 10] as const),
])

const word = [...values.keys()].join('|')
const number = `(?:${word}|hundred)(?:(?:\\s+and)?[\\s-]+(?:${word}|hundred))*`
const unit = 'seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?|months?|years?'

export function numberOf(text: string): number | undefined {
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text)
  let sum = 0
  for (const part of text.toLowerCase().split(/[\s-]+(?:and\s+)?/)) {
    const value = values.get(part)
    if (part === 'hundred') sum = (sum || 1) * 100
    else if (value === undefined) return undefined
    else sum += value
  }
  return sum
}

const hour = `${word}|\\d{1,2}`

const rules: readonly [RegExp, (...groups: string[]) => string][] = [
  [/\b(?:an?|one) (hour|minute|day|week) and a half\b/gi, (_, of = '') => `1.5 ${of}s`],
  [
    new RegExp(`\\b(${number}|\\d+) and a half (hours|minutes|days|weeks)\\b`, 'gi'),
    (_, count = '', of = '') => `${numberOf(count)}.5 ${of}`,
  ],
  [/\b(?:half an|a half) hour\b/gi, () => '30 minutes'],
  [/\bhalf a minute\b/gi, () => '30 seconds'],
  [/\b(?:a )?quarter (?:of an )?hour\b/gi, () => '15 minutes'],
  [new RegExp(`\\ba couple (?:of )?(${unit})\\b`, 'gi'), (_, of = '') => `2 ${of}`],
  [new RegExp(`\\b(${number})(?=[\\s-]+(?:${unit})\\b)`, 'gi'), text => String(numberOf(text))],
  [
    new RegExp(`\\b(?:at )?(half|quarter|(?:a )quarter) (past|to) (${hour})\\b`, 'gi'),
    (text, part = '', side = '', of = '') => clock(text, part.includes('half') ? 30 : 15, side, of),
  ],
  [
    new RegExp(`\\bat (${word})(?:[\\s-]+(${number}))?\\b(?!\\s+(?:${unit})\\b)`, 'gi'),
    (text, at = '', minutes = '') => {
      const minute = minutes === '' ? 0 : numberOf(minutes)
      if (minute === undefined || minute > 59 || (numberOf(at) ?? 24) > 23) return text
      return minutes === '' ? `at ${numberOf(at)}` : `at ${numberOf(at)}:${String(minute).padStart(2, '0')}`
    },
  ],
]

function clock(text: string, minutes: number, side: string, of: string): string {
  const hour = numberOf(of)
  if (hour === undefined || hour > 23) return text
  return side.toLowerCase() === 'past' ? `at ${hour}:${minutes}` : `at ${(hour + 23) % 24}:${60 - minutes}`
}

export const withDigits = (text: string): string =>
  rules.reduce((so, [pattern, replace]) => so.replace(pattern, replace), text)
