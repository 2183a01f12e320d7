import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Parsed, parseStrict } from './parse.ts'

const parse = (text: string): Parsed => parseStrict(text, { depth: 64 })

const codeOf = (parsed: Parsed): string => ('refusal' in parsed ? parsed.refusal.code : 'accepted')
const isIncomplete = (parsed: Parsed): boolean => 'refusal' in parsed && parsed.incomplete

const anyObject = fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue({ stringUnit: 'binary' }))

/** Keys are names, so a document may well use the ones every object inherits. */
const awkwardObject = fc.dictionary(
  fc.constantFrom('constructor', 'toString', 'a:b', 'a"b', '\\', ''),
  fc.jsonValue(),
)

const withoutPrototypeKeys = (text: string): unknown =>
  JSON.parse(text, (key, value) => (key === '__proto__' ? undefined : value))

describe('strict parsing', () => {
  it('gives what JSON.parse gives for any document that names each key once', () => {
    fc.assert(
      fc.property(fc.oneof(anyObject, awkwardObject), fc.boolean(), (value, indent) => {
        const text = JSON.stringify(value, null, indent ? 2 : 0)
        expect(parseStrict(text, { depth: 1000 })).toEqual({ body: withoutPrototypeKeys(text) })
      }),
    )
  })

  it('never throws, whatever the text', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary' }), text => void parse(text)))
    const json = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      '"',
      ':',
      ',',
      '\\',
      '\\u',
      'd',
      '8',
      '0',
      '-',
      'true',
      'nul',
      ' ',
    )
    fc.assert(fc.property(fc.array(json), parts => void parse(parts.join(''))))
  })

  it('refuses a key that comes twice, at any depth and however it is spelled', () => {
    for (const text of [
      '{"a":1,"a":1}',
      '{"a":{"b":[{"c":1,"d":2,"c":3}]}}',
      '{"type":"message","\\u0074ype":"deploy"}',
      '{"__proto__":1,"__proto__":2}',
      '{"":1,"":2}',
    ]) {
      expect(codeOf(parse(text))).toBe('duplicate_key')
    }
  })

  it('is not confused by colons, quotes and brackets inside strings', () => {
    const body = { 'a:b': 'c:d', 'e"f': '":":{[', '\\': '\\":', g: [':', { h: ':' }] }
    expect(parse(JSON.stringify(body))).toEqual({ body })
  })

  it('refuses more levels than allowed before it parses anything', () => {
    const nested = (levels: number) => `{"a":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`
    expect(codeOf(parse(nested(64)))).toBe('accepted')
    expect(codeOf(parse(nested(65)))).toBe('too_deep')
    expect(codeOf(parse('['.repeat(5_000_000)))).toBe('too_deep')
    expect(codeOf(parse('{"a":'.repeat(5_000_000)))).toBe('too_deep')
    expect(codeOf(parseStrict(nested(100_000), { depth: 100_000 }))).toBe('accepted')
  })

  it('takes out keys named __proto__, wherever they are', () => {
    const parsed = parse(
      '{"__proto__":{"isMain":true},"a":{"\\u005f_proto__":{"b":1},"c":[{"__proto__":[]}]}}',
    )
    expect(parsed).toEqual({ body: { a: { c: [{}] } } })
    const body: Record<string, unknown> = 'body' in parsed ? parsed.body : {}
    expect(body.isMain).toBeUndefined()
    expect(Object.hasOwn(body, '__proto__')).toBe(false)
  })

  it('refuses half a surrogate pair in a value, a list or a key, and takes a whole pair', () => {
    for (const text of [
      '{"a":"\\ud800"}',
      '{"a":["x\\uDFFFy"]}',
      '{"\\uDc00":1}',
      '{"a":{"b":"\\ude00\\ud83d"}}',
    ]) {
      expect(codeOf(parse(text))).toBe('invalid_utf8')
    }
    expect(parse('{"a":"\\ud83d\\uDE00 \\\\ud800"}')).toEqual({ body: { a: '😀 \\ud800' } })
  })

  it('takes nothing but an object', () => {
    for (const text of ['[]', '1', '"a"', 'null', 'true', '[{"type":"message"}]']) {
      expect(codeOf(parse(text))).toBe('invalid_json')
      expect(isIncomplete(parse(text))).toBe(false)
    }
  })

  it('says of every beginning of a document that it may not be finished', () => {
    expect(isIncomplete(parse(''))).toBe(true)
    expect(isIncomplete(parse(' \n\t'))).toBe(true)
    const shell = '{"type":"schedule_task","n":[-1.5e+3,0.25,true,false,null,[],{}],"t":"\\u00e9\\n"}'
    fc.assert(
      fc.property(
        fc.oneof(
          anyObject.map(value => JSON.stringify(value)),
          fc.constant(shell),
        ),
        fc.nat(),
        (text, at) => {
          const beginning = text.slice(0, at % text.length)
          expect(parse(beginning)).toMatchObject({ incomplete: true, refusal: { code: 'invalid_json' } })
        },
      ),
    )
    for (let end = 0; end < shell.length; end++) expect(isIncomplete(parse(shell.slice(0, end)))).toBe(true)
  })

  it('says of what no writer could finish that it is broken', () => {
    for (const text of [
      '{"a":@',
      '{a',
      '{"a" 1',
      '{"a":1 "b"',
      '{"a":1,}',
      '{"a":[1,]',
      '{"a":]',
      '{"a":[}',
      '{"a":01',
      '{"a":1.x',
      '{"a":+',
      '{"a":truf',
      '{"a":"\\x',
      '{"a":"\\u12g',
      '{"a":"\n',
      '{"a":1}}',
      '{"a":1} x',
      '{}{',
      'hello',
      '}',
      '[1,',
      "{'a'",
    ]) {
      expect(parse(text)).toMatchObject({ incomplete: false, refusal: { code: 'invalid_json' } })
    }
  })

  it('never repeats a word of the file in its refusal', () => {
    for (const text of [
      '{"password":hunter2}',
      'hunter2',
      '{"hunter2":1,"hunter2":2}',
      '{"hunter2":"\\ud800"}',
      '{"hunter2',
    ]) {
      expect(JSON.stringify(parse(text))).not.toContain('hunter2')
    }
  })
})
