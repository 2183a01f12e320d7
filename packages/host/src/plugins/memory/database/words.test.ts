import { expect, test } from 'vitest'
import { alike, wordsAskedFor, wordsIn } from './words.ts'

test.each([
  ['Café', 'cafe\u0301'],
  ['STRASSE', 'Straße'],
  ['İstanbul', 'istanbul'],
  ['ısı', 'ISI'],
  ['ΟΔΟΣ', 'οδός'],
  ['Ёлка', 'елка'],
  ['Łódź', 'lodz'],
  ['ﬁnance ２０２６', 'finance 2026'],
  ['Kranken\u00ADversicherung', 'krankenversicherung'],
  ['ｶﾞｲﾄﾞ', 'ガイド'],
  ['الْكِتَابُ', 'الكتاب'],
  ['أحمد', 'احمد'],
  ['مدرسة', 'مدرسه'],
  ['كـــتاب', 'كتاب'],
  ['کتاب', 'كتاب'],
  ['٢٠٢٦', '۲۰۲۶'],
  ['שָׁלוֹם', 'שלום'],
])('%s and %s are written alike', (one, other) => {
  expect(alike(one)).toBe(alike(other))
})

test.each([
  ['ガ', 'カ'],
  ['किताब', 'कताब'],
  ['มา', 'ม้า'],
  ['한', '하'],
])('%s and %s are not', (one, other) => {
  expect(alike(one)).not.toBe(alike(other))
})

test('text is parted as its script is', () => {
  expect(wordsIn("Anna's e-mail: anna@example.org, 3.14")).toEqual(
    'anna s e mail anna example org 3 14'.split(' '),
  )
  expect(wordsIn('iPhone手机')).toEqual(['iphone', '手', '机', '手机'])
  expect(wordsIn('ปีใหม่')).toContain('ปี')
  expect(wordsIn('👩‍👩‍👧❤️🇩🇪')).toEqual(['👩', '👩', '👧', '❤', '🇩🇪'])
  expect(wordsIn(' \0\t"*()^-:{} ')).toEqual([])
})

test('of a run without spaces the longest pieces are asked for', () => {
  expect(wordsAskedFor('医疗保险 猫 医疗')).toEqual(['医疗', '疗保', '保险', '猫'])
  expect(wordsAskedFor('ประกัน').every(piece => [...piece].length === 3)).toBe(true)
})

test('nothing that is syntax of a query is ever part of a word', () => {
  const all = Array.from({ length: 0x2_0000 }, (_, point) => String.fromCodePoint(point))
  const symbols = new Set(wordsIn(all.join(' ')).flatMap(word => [...word]))
  for (const symbol of '\0"\'*()^+-:{}[],.;~!@#$%&=<>?/\\|` \n') expect(symbols.has(symbol)).toBe(false)
  expect(symbols.size).toBeGreaterThan(50_000)
})

test('half a character and a word of a million letters do no harm', () => {
  expect(wordsIn('\uD83D x \uDC00')).toEqual(['x'])
  expect(wordsIn('y'.repeat(1_000_000))).toEqual(['y'.repeat(64)])
})
