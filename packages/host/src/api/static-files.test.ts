import { tmpdir } from 'node:os'
import { expect, test } from 'vitest'
import { bounded } from '../base/testing.ts'
import { createStaticFiles } from './static-files.ts'

test('a path costs little however it is made: whoever asks need not have signed in', () => {
  const files = createStaticFiles(tmpdir())
  for (const part of ['a', 'a/', '%', 'a.', '-a', './', 'ab/-.']) {
    const path = `/${part.repeat(8000 / part.length)}`
    for (const end of ['!', '.', '/', '.!', '.js', '']) {
      bounded(() => files.asset(path + end))
      expect(bounded(() => files.isPage(path + end))).toBe(!/[!.]|\/\//.test(path + end))
    }
  }
})
