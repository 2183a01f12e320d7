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
    const others = ['@anthropic-ai/claude-agent-sdk', 'baileys', 'libsignal', 'sharp']
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

test('what is installed beside the bundle, with channels and with drivers, is checked with all it needs', () => {
  const checked = checkInstalled()
  const ofClaude = ['claude-agent-sdk', 'claude-agent-sdk-linux-x64', 'sdk'].map(
    name => `@anthropic-ai/${name}`,
  )
  for (const name of ['hono', 'zod', 'pino', 'thread-stream', 'grammy', 'debug', 'sharp', ...ofClaude])
    expect(checked).toContain(name)
})

test('a driver may install a package under its publisher’s own terms only if its own licence names them', () => {
  const sdk = '@anthropic-ai/claude-agent-sdk'
  const lock = (name: string) => ({
    packages: {
      '': { dependencies: { [name]: '1' } },
      [`node_modules/${name}`]: { license: 'SEE LICENSE IN README.md', peerDependencies: { peer: '1' } },
      'node_modules/peer': { license: 'ISC' },
    },
  })
  const said = 'MIT AND LicenseRef-Anthropic'
  expect(() => checkLock(lock(sdk), [sdk], 'MIT')).toThrow(`${sdk} is licensed under LicenseRef-Anthropic`)
  expect(checkLock(lock(sdk), [sdk], said)).toEqual([sdk, 'peer'])
  expect(() => checkLock(lock('other'), ['other'], said)).toThrow('SEE LICENSE IN README.md')
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
