import { describe, expect, test } from 'vitest'
import { lentServersSchema } from './settings.ts'

const messages = (server: object, name = 'github') => {
  const parsed = lentServersSchema.safeParse({ [name]: server })
  return parsed.success ? [] : parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`)
}

describe('lent servers in the configuration', () => {
  test('a program with its key, and an address with its key', () => {
    expect(
      lentServersSchema.parse({
        github: {
          command: ['npx', '-y', 'server'],
          env: ['GITHUB_TOKEN'],
          tools: ['search'],
          groups: ['family'],
        },
        linear: {
          url: 'https://example.com/mcp',
          headers: { authorization: { variable: 'LINEAR_KEY', prefix: 'Bearer ' } },
        },
      }),
    ).toMatchObject({
      github: { env: ['GITHUB_TOKEN'] },
      linear: { headers: { authorization: { prefix: 'Bearer ' } } },
    })
    expect(lentServersSchema.parse(undefined)).toEqual({})
  })

  test.each([
    ['neither a command nor a url', {}, 'github.command'],
    ['both', { command: 'a', url: 'https://example.com' }, 'github.url'],
    ['headers for a program', { command: 'a', headers: { a: 'b' } }, 'github.headers'],
    ['a directory for an address', { url: 'https://example.com', cwd: '/tmp' }, 'github.cwd'],
    [
      'a key in the file',
      { url: 'https://example.com', headers: { Authorization: 'Bearer x' } },
      'github.headers',
    ],
    ['a password in the address', { url: 'https://a:b@example.com' }, 'github.url'],
    ['another protocol', { url: 'file:///etc/passwd' }, 'github.url'],
    ['no program', { command: [] }, 'github.command'],
    ['a word nobody knows', { command: 'a', tool: ['x'] }, 'github'],
    ['a variable with an equals sign', { command: 'a', env: ['A=b'] }, 'github.env'],
    ['a folder that is none', { command: 'a', groups: ['../main'] }, 'github.groups'],
    ['a label nobody knows', { command: 'a', labels: { public_sink: 'maybe' } }, 'github.labels.public_sink'],
    [
      'a header with a line break',
      { url: 'https://example.com', headers: { 'a\nb': 'c' } },
      'github.headers',
    ],
  ])('%s is refused', (_, server, place) => {
    const told = messages(server)
    expect(told.length).toBeGreaterThan(0)
    expect(told.join()).toContain(place)
  })

  test.each(['GitHub', 'git_hub', '1git', 'a'.repeat(33), ''])('the name "%s" is refused', name => {
    expect(messages({ command: 'a' }, name)).not.toEqual([])
  })
})
