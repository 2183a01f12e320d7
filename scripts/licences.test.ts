import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { checkInstalled, checkLicence, checkLock, writeLicences } from './licences.ts'

interface Component {
  name: string
  licenses: [{ license: { id: string } }]
  hashes?: unknown[]
}

const named = (bill: { components: Component[] }, name: string) =>
  bill.components.find(one => one.name === name)

describe.each(['cli', 'agent'] as const)('what is bundled into %s', folder => {
  let texts: string
  let bill: { bomFormat: string; components: Component[] }

  beforeAll(async () => {
    const output = mkdtempSync(join(tmpdir(), 'hatchway-licences-'))
    try {
      // Throws if the licence of anything that is bundled does not allow it.
      await writeLicences(folder, output)
      texts = readFileSync(join(output, 'THIRD-PARTY-LICENSES.txt'), 'utf8')
      bill = JSON.parse(readFileSync(join(output, 'sbom.cdx.json'), 'utf8'))
    } finally {
      rmSync(output, { recursive: true })
    }
  })

  test('is listed with the text of its licence, and in the bill of materials', () => {
    expect(bill.bomFormat).toBe('CycloneDX')
    expect(named(bill, 'zod')).toMatchObject({ licenses: [{ license: { id: 'MIT' } }] })
    expect(named(bill, 'zod')?.hashes).toHaveLength(1)
    const listed = [...texts.matchAll(/^(\S+) \S*\nLicence: (\S+)$/gm)].map(([, name, licence]) => [
      name,
      licence,
    ])
    expect(listed).toEqual(bill.components.map(one => [one.name, one.licenses[0].license.id]))
    expect(texts).toContain('Permission is hereby granted')
  })

  test('includes what a package carries inside itself', () => {
    expect(named(bill, 'ajv')).toBeDefined()
  })

  test('has neither tools, nor the Claude SDK, nor what WhatsApp needs in it', () => {
    const others = ['@anthropic-ai/claude-agent-sdk', 'baileys', 'libsignal']
    for (const name of ['vitest', 'typescript', ...others]) expect(named(bill, name)).toBeUndefined()
  })
})

test('of files under MPL-2.0, it says where their source is', async () => {
  const output = mkdtempSync(join(tmpdir(), 'hatchway-licences-'))
  onTestFinished(() => rmSync(output, { recursive: true }))
  await writeLicences('cli', output)
  const texts = readFileSync(join(output, 'THIRD-PARTY-LICENSES.txt'), 'utf8')
  expect(texts).toMatch(/^ical\.js (\S+)\nLicence: MPL-2\.0\nSource: https:.*\n\n.*npm pack ical\.js@\1\n/m)
})

test('a licence that is not on the list is refused', () => {
  const check = (licence: string) => () => checkLicence('left-pad', licence)
  for (const licence of ['MIT', '(MIT OR GPL-3.0-only)', 'MIT AND ISC']) expect(check(licence)).not.toThrow()
  for (const licence of [
    'GPL-3.0-only',
    'MIT AND GPL-3.0-only',
    'SEE LICENSE IN README.md',
    'no licence',
    'toString',
  ])
    expect(check(licence)).toThrow(`left-pad is licensed under ${licence}`)
})

test('what is installed beside the bundle, and with channels, is checked with all it needs', () => {
  const checked = checkInstalled()
  for (const name of ['hono', 'zod', 'pino', 'thread-stream', 'grammy', 'debug'])
    expect(checked).toContain(name)
})

test('a channel may install a library under the GPL only if its own licence says so', () => {
  const lock = {
    packages: {
      '': { dependencies: { a: '1' } },
      'node_modules/a': { license: 'MIT', dependencies: { b: '1' } },
      'node_modules/b': { license: 'MIT' },
      'node_modules/a/node_modules/b': { license: 'GPL-3.0', optionalDependencies: { c: '1' } },
      'node_modules/c': { license: 'ISC' },
    },
  }
  expect(() => checkLock(lock, ['a'])).toThrow('b is licensed under GPL-3.0')
  expect(() => checkLock(lock, ['a'], 'MIT')).toThrow('b is licensed under GPL-3.0')
  expect(checkLock(lock, ['a'], 'MIT AND GPL-3.0')).toEqual(['a', 'b', 'c'])
})
