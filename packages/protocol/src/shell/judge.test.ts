import { describe, expect, it } from 'vitest'
import { judgeShell } from './judge.ts'
import { corpus } from './testing/corpus/index.ts'

describe('the corpus', () => {
  it.each(corpus.map(({ command, harmless }) => [harmless ? 'harmless' : 'not harmless', command] as const))(
    '%s: %j',
    (expected, command) => {
      expect(judgeShell(command).harmless ? 'harmless' : 'not harmless').toBe(expected)
    },
  )

  it('is large, half of it evasions, and names no command twice', () => {
    expect(corpus.length).toBeGreaterThanOrEqual(320)
    expect(corpus.filter(({ evasion }) => evasion).length).toBeGreaterThanOrEqual(corpus.length / 2)
    expect(new Set(corpus.map(({ command }) => command)).size).toBe(corpus.length)
  })
})

describe('a reason', () => {
  it('says what is wrong', () => {
    expect(judgeShell('ls; frobnicate')).toEqual({ harmless: false, reason: 'frobnicate is not on the list' })
    expect(judgeShell('sort -o a b')).toEqual({
      harmless: false,
      reason: 'sort is used with an option that is not on the list',
    })
  })

  it('quotes nothing of a command but the names of programs', () => {
    const secret = 'sk-ant-0123456789'
    for (const { command } of corpus) {
      const verdict = judgeShell(`cat '${secret}' "${secret}" ; ${command}`)
      if (!verdict.harmless) expect(verdict.reason).not.toContain(secret)
    }
    expect(JSON.stringify(judgeShell(`'${secret} x' a; ./${secret}`))).not.toContain(secret)
  })
})

describe('what is too much', () => {
  it.each([
    ['letters', 'x'.repeat(10_001)],
    ['words', 'ls '.repeat(300)],
    [
      'shells in shells',
      ['a', 'b', 'c', 'd'].reduce(text => `bash -c '${text.replaceAll("'", "'\\''")}'`, 'ls'),
    ],
  ])('%s are not judged', (_, command) => {
    expect(judgeShell(command).harmless).toBe(false)
  })

  it.each([
    ["'", "'"],
    ['"', '"'],
    ['\\a', ''],
    ['a', ''],
    ['* ', ''],
    ['ls;', ''],
    ['| ', ''],
    ['#', '\n'],
    ['%', ''],
    ['%0', ''],
    ['1p;', ''],
    ['--', ''],
    ['-n ', ''],
    ["bash -c '", "'"],
    ['&>/dev/null ', ''],
    [' \\\n', ''],
  ])('many %j cost no more than their length', (piece, end) => {
    for (const begin of ['', 'printf ', "printf '", 'sed ', "sed 's/", 'find . ', 'grep ', 'echo "', '[ ']) {
      for (const length of [1000, 2000, 4000, 8000]) {
        const meter = { steps: 0 }
        const command = `${begin}${piece.repeat(Math.floor(length / piece.length))}${end}`
        judgeShell(command, meter)
        expect(meter.steps).toBeLessThanOrEqual(15 * command.length + 10)
      }
    }
  })
})

describe('characters', () => {
  it.each([
    ['a carriage return', 'ls\r; pwd'],
    ['a zero', 'ls\u0000'],
    ['an escape', 'echo \u001b[2J'],
    ['a blank that is none', 'ls\u00a0-l'],
    ['a mark that turns writing round', 'echo \u202e'],
    ['half a character', 'echo "\ud800"'],
  ])('that cannot be seen are not harmless: %s', (_, command) => {
    expect(judgeShell(command).harmless).toBe(false)
  })
})
