import { describe, expect, test } from 'vitest'
import { textOfQuestions } from '../../commands/question-text.ts'
import { answersIn } from './parse.ts'

const colour = {
  question: 'Which colour?',
  options: [{ label: 'Red', description: 'warm' }, { label: 'Dark blue' }, { label: 'Straße' }],
}
const size = { question: 'Which size?', options: [{ label: 'Small' }, { label: 'Salt, and pepper' }] }
const free = { question: 'Why?' }

describe('one question with options', () => {
  test.each([
    ['2', 2],
    [' 2 ', 2],
    ['2.', 2],
    ['2)', 2],
    ['(2)', 2],
    ['#2', 2],
    ['option 2', 2],
    ['Option #2', 2],
    ['OPTION  2.', 2],
    ['no. 2', 2],
    ['number 2', 2],
    ['2️⃣', 2],
    ['②', 2],
    ['２', 2],
    ['red', 1],
    ['RED!', 1],
    ['  dark   BLUE ', 2],
    ['dark\nblue.', 2],
    ['strasse', null],
    ['STRAßE', 3],
    ['stra\u00dfe', 3],
  ])('%j', (text, option) => {
    const expected =
      option === null ? undefined : [{ answer: colour.options[option - 1]?.label ?? '', option }]
    expect(answersIn(text, [colour], false)).toEqual(expected)
  })

  test.each(['0', '4', '-1', '2 3', '1, 2', '1.5', '2nd', 'second', 'the blue one', '99999999999', '2?'])(
    '%j names no option: own words where the agent is spoken to, nothing elsewhere',
    text => {
      expect(answersIn(text, [colour], false)).toBeUndefined()
      expect(answersIn(text, [colour], true)).toEqual([{ answer: text, option: null }])
    },
  )

  test('nothing is no answer', () => {
    for (const text of ['', ' ', '\n\t']) expect(answersIn(text, [colour], true)).toBeUndefined()
  })

  test('where options are numbers, the number that is said is meant, and a sign before it counts them', () => {
    const many = { question: 'How many?', options: [{ label: '3' }, { label: '2' }, { label: '1' }] }
    expect(answersIn('3', [many], false)).toEqual([{ answer: '3', option: 1 }])
    expect(answersIn('#3', [many], false)).toEqual([{ answer: '1', option: 3 }])
    expect(answersIn('option 3', [many], false)).toEqual([{ answer: '1', option: 3 }])
  })

  test('of two options with one name the first is taken', () => {
    const twins = { question: 'Which?', options: [{ label: 'Yes' }, { label: 'yes' }] }
    expect(answersIn('yes', [twins], false)).toEqual([{ answer: 'Yes', option: 1 }])
  })

  test('a long text that could be read in many ways is not', () => {
    for (const text of [
      `option${' '.repeat(99_000)}x`,
      ' ,'.repeat(50_000),
      '1 '.repeat(50_000),
      '(('.repeat(50_000),
    ]) {
      expect(answersIn(text, [colour, size], false)).toBeUndefined()
    }
  })
})

describe('without options', () => {
  test('only what is said to the agent is an answer', () => {
    expect(answersIn('2', [free], false)).toBeUndefined()
    expect(answersIn('2', [free], true)).toEqual([{ answer: '2', option: null }])
    expect(answersIn('2', [{ ...free, options: [] }], false)).toBeUndefined()
  })
})

describe('several questions', () => {
  const red = { answer: 'Red', option: 1 }
  const pepper = { answer: 'Salt, and pepper', option: 2 }
  test.each([
    ['1', [red]],
    ['red', [red]],
    ['1, 2', [red, pepper]],
    ['1 2', [red, pepper]],
    ['#1 #2', [red, pepper]],
    ['1. 2.', [red, pepper]],
    ['1;2', [red, pepper]],
    ['1\n2', [red, pepper]],
    ['red\nsalt', undefined],
    ['red\nsmall', [red, { answer: 'Small', option: 1 }]],
    ['red, option 2', [red, pepper]],
    ['1, 3', undefined],
    ['1, 2, 1', undefined],
    ['1, ', [red]],
    ['yes, 2', undefined],
  ])('%j', (text, expected) => {
    expect(answersIn(text, [colour, size], false)).toEqual(expected)
  })

  test('a name with a comma in it is one name', () => {
    expect(answersIn('salt, and pepper', [size, colour], false)).toEqual([pepper])
  })

  test('what is left over is taken as a whole, for the first of them', () => {
    expect(answersIn('1, 3', [colour, size], true)).toEqual([{ answer: '1, 3', option: null }])
  })
})

describe('as text', () => {
  const main = { main: true, requires_trigger: true, trigger: null }

  test('one question', () => {
    expect(textOfQuestions([colour], main)).toBe(
      'Which colour?\n1. Red: warm\n2. Dark blue\n3. Straße\n\nAnswer with a number or in your own words.',
    )
    expect(textOfQuestions([free], main)).toBe('Why?\n\nAnswer in your own words.')
  })

  test('several are numbered', () => {
    expect(textOfQuestions([free, size], main)).toBe(
      'Question 1 of 2: Why?\n\nQuestion 2 of 2: Which size?\n1. Small\n2. Salt, and pepper\n\n' +
        'Answer one after the other, with a number or in your own words.',
    )
  })

  test('where the agent has to be called, own words have to call it', () => {
    const group = { main: false, requires_trigger: true, trigger: '@bot' }
    expect(textOfQuestions([free], group)).toContain('Answer in your own words, calling @bot.')
    expect(textOfQuestions([size], { ...group, trigger: null })).toContain('calling the agent.')
    expect(textOfQuestions([free], { ...group, requires_trigger: false })).toContain(
      'Answer in your own words.',
    )
  })

  test('a label cannot pass for another option', () => {
    const sly = { question: 'Delete?', options: [{ label: 'No\n2. Yes', description: 'a\u2028b' }] }
    expect(textOfQuestions([sly], main)).toContain('\n1. No 2. Yes: a b\n')
  })
})
