import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { expect, test } from 'vitest'

/**
 * The fuzzer counts the steps of the judge's own loops, and sees nothing of what a regular expression costs. One that
 * repeats nothing without a bound looks at each character a bounded number of times. These do repeat, and are linear for
 * the reason given; a new one has to be looked at before it is added here.
 */
const unbounded = [
  // One class, from the beginning to the end: there is one way to match it.
  '/^-[nEru]+$/',
  // What is repeated never contains the mark that ends it, so there is one way to match it, and the text is short.
  String.raw`/^s([/|,#])(?:(?!\1)[^\\\n[\]])+\1(?:(?!\1)[^\\\n[\]])*\1[gpI]{0,3}$/`,
  // They split lists of this source, and nothing that anybody sends.
  String.raw`/\s+/`,
]

const repeatsUnbounded = (regexp: string) =>
  /[*+]|\{\d+,\}/.test(regexp.replace(/\\./g, 'x').replace(/\[[^\]]*\]/g, 'x'))

function regexpsIn(node: ts.Node, source: ts.SourceFile): string[] {
  const isMade =
    (ts.isNewExpression(node) || ts.isCallExpression(node)) && node.expression.getText(source) === 'RegExp'
  const own = ts.isRegularExpressionLiteral(node) || isMade ? [node.getText(source)] : []
  const below: string[] = []
  ts.forEachChild(node, child => void below.push(...regexpsIn(child, source)))
  return [...own, ...below]
}

test('no regular expression of the judge can take more than linear time', () => {
  const files = globSync('*.ts', { cwd: import.meta.dirname, exclude: ['*.test.ts'] })
  const all = files.flatMap(name => {
    const text = readFileSync(join(import.meta.dirname, name), 'utf8')
    const source = ts.createSourceFile(name, text, ts.ScriptTarget.ESNext)
    return regexpsIn(source, source)
  })
  expect(all.length).toBeGreaterThan(20)
  const found = all.filter(regexp => !regexp.startsWith('/') || repeatsUnbounded(regexp))
  expect(new Set(found)).toEqual(new Set(unbounded))
})

test.each(['/(a+)+$/', '/a*b/', String.raw`/\d{2,}/`, String.raw`/[\]]+/`, String.raw`/\\+/`])(
  '%s repeats without a bound',
  regexp => {
    expect(repeatsUnbounded(regexp)).toBe(true)
  },
)
test.each(['/a{1,9}/', '/[*+]/', String.raw`/\+/`, String.raw`/[\]*]/`, '/^-[a-z]?$/'])(
  '%s does not',
  regexp => {
    expect(repeatsUnbounded(regexp)).toBe(false)
  },
)
