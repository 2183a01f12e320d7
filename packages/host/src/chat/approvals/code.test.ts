import { describe, expect, test } from 'vitest'
import { createAttempts } from './attempts.ts'
import { codeIn, decisionIn, newCode } from './code.ts'

const code = 'BCDFG-HJKLM'

describe('codes', () => {
  test('are consonants, different each time, and found again in what is typed', () => {
    const codes = Array.from({ length: 2000 }, newCode)
    expect(new Set(codes).size).toBe(codes.length)
    for (const each of codes) {
      expect(each).toMatch(/^[BCDFGHJKLMNPQRSTVWXZ]{5}-[BCDFGHJKLMNPQRSTVWXZ]{5}$/)
      expect(decisionIn(`allow ${each}`)).toEqual({ decision: 'allow', code: each, words: '' })
      expect(codeIn(each)).toBe(each)
    }
    // Every letter comes up in every place.
    for (const place of [0, 4, 6, 10]) expect(new Set(codes.map(each => each[place])).size).toBe(20)
  })

  test.each([
    ['allow BCDFG-HJKLM', 'allow', ''],
    ['  Allow   bcdfg-hjklm ', 'allow', ''],
    ['ALLOW bcdfghjklm', 'allow', ''],
    ['allow BCDFG HJKLM', 'allow', ''],
    ['allow BCDFG–HJKLM', 'allow', ''],
    ['allow "BCDFG-HJKLM"', 'allow', ''],
    ['allow BCDFG-HJKLM.', 'allow', ''],
    ['allow\nBCDFG-HJKLM', 'allow', ''],
    ['always BCDFG-HJKLM', 'always', ''],
    ['Always  tool bcdfghjklm', 'always_tool', ''],
    ['deny BCDFG-HJKLM too expensive', 'deny', 'too expensive'],
    ['deny BCDFG-HJKLM: too\nexpensive!', 'deny', 'too\nexpensive!'],
    ['deny BCDFG-HJKLM, no', 'deny', 'no'],
    ['ａｌｌｏｗ ＢＣＤＦＧ－ＨＪＫＬＭ', 'allow', ''],
  ])('%j decides', (text, decision, words) => {
    expect(decisionIn(text)).toEqual({ decision, code, words })
  })

  test.each([
    '',
    'allow',
    'allow me to explain',
    'always everything',
    'always short-lived',
    'allow world-class',
    'deny that',
    'BCDFG-HJKLM',
    'allowBCDFG-HJKLM',
    'allow BCDFG-HJKLMN',
    'allow BCDFG-HJKLM1',
    'allow BCDFG-HJKL',
    'allow  BCDFG--HJKLM',
    'please allow BCDFG-HJKLM',
    '> allow BCDFG-HJKLM',
    'allow ABCDE-FGHIJ',
    `allow ${' '.repeat(50_000)}x`,
    `deny ${'B'.repeat(100_000)}`,
  ])('%j is about something else', text => {
    expect(decisionIn(text)).toBeUndefined()
  })

  test('a number is no code', () => {
    for (const text of ['17', '', 'BCDFG', 'BCDFG-HJKLM BCDFG-HJKLM']) expect(codeIn(text)).toBeUndefined()
    expect(codeIn(' bcdfghjklm')).toBe(code)
  })
})

test('wrong attempts are counted by the minute, in each chat for itself', () => {
  let time = 0
  const attempts = createAttempts({ perMinute: 3, now: () => time })
  for (let i = 0; i < 3; i++) {
    expect(attempts.areTooMany('a')).toBe(false)
    attempts.count('a')
    time += 1000
  }
  expect(attempts.areTooMany('a')).toBe(true)
  expect(attempts.areTooMany('b')).toBe(false)
  time = 60_000
  expect(attempts.areTooMany('a')).toBe(false)
  attempts.count('a')
  expect(attempts.areTooMany('a')).toBe(true)
})
