import { expect, test } from 'vitest'
import { bounded } from '../../base/testing.ts'
import { findForms } from './forms.ts'

test('a search costs little however the text is made: the inspector’s rules do it where everybody waits', () => {
  const begin = [
    'eyJ-',
    'eyJ',
    '.eyJ',
    'M-',
    'a+',
    'a://b:',
    'sk-a',
    'xoxb-',
    '-token',
    'authorization: bearer ',
  ]
  for (const part of begin) {
    const text = part.repeat(600_000 / part.length)
    bounded(() => [...findForms(text)])
  }
})

test('a web token is found wherever it stands', () => {
  const token = `eyJ${'aB3d'.repeat(5)}.eyJ${'aB3d'.repeat(9)}.${'x'.repeat(43)}`
  for (const text of [token, `token=${token}`, `a-${token}`, `"${token}"`, `eyJ.eyJ ${token} eyJ`]) {
    expect([...findForms(text)].map(({ kind }) => kind)).toContain('json_web_token')
  }
})
