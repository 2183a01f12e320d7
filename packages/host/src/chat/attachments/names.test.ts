import { expect, test } from 'vitest'
import { shownName, storedName } from './names.ts'

test.each([
  ['report.pdf', 'report.pdf'],
  ['Grüße 👋.png', 'Grüße 👋.png'],
  ['../../etc/passwd', 'passwd'],
  ['C:\\Users\\ann\\a.txt', 'a.txt'],
  ['a\nb\u001b[31m.txt', 'a_b_[31m.txt'],
  ['invoice\u202efdp.exe', 'invoice_fdp.exe'],
  ['half \ud83d', 'half \ufffd'],
  ['/', 'file'],
  ['..', 'file'],
  ['.', 'file'],
  [' \t ', '_'],
  ['.env', '.env'],
  ['<img src=x onerror=alert(1)>', '<img src=x onerror=alert(1)>'],
])('%j is shown as %j', (given, shown) => {
  expect(shownName(given)).toBe(shown)
})

test('long names are cut by bytes, and keep their ending', () => {
  for (const letter of ['x', 'é', '👋']) {
    const name = shownName(`${letter.repeat(300)}.tar.gz`)
    expect(Buffer.byteLength(name)).toBeLessThanOrEqual(200)
    expect(name.endsWith('.gz')).toBe(true)
    expect(name.isWellFormed()).toBe(true)
    expect(Buffer.byteLength(storedName('0'.repeat(24), name))).toBeLessThanOrEqual(255)
  }
})

test.each([
  ['a b;rm -rf $(x).txt', '7-a_b_rm_-rf_x_.txt'],
  ['Grüße 👋.png', '7-Grüße_.png'],
  ["'quoted'\"", '7-_quoted_'],
  ['../x', '7-.._x'],
])('%j is stored as %j', (name, stored) => {
  expect(storedName('7', name)).toBe(stored)
})
