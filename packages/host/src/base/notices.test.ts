import { expect, test } from 'vitest'
import { createNotices } from './notices.ts'

test('a notice reaches everybody who listens for its kind, in the order in which they came, and nobody else', () => {
  const notices = createNotices<{ kind: 'said'; text: string } | { kind: 'gone' }>()
  const heard: string[] = []
  notices.publish({ kind: 'said', text: 'before anybody listens' })
  notices.on('said', ({ text }) => heard.push(`first: ${text}`))
  notices.on('gone', () => heard.push('gone'))
  notices.on('said', ({ text }) => heard.push(`second: ${text}`))
  notices.publish({ kind: 'said', text: 'hello' })
  expect(heard).toEqual(['first: hello', 'second: hello'])
})
