import { judgeShell } from '@hatchway/protocol/shell'
import { describe, expect, test } from 'vitest'
import { commandOf, readInvocation } from './invocation.ts'

const asked = (
  call: readonly [string, ...string[]],
  more: { text?: string; hasProfile?: boolean; variables?: NodeJS.ProcessEnv } = {},
) => {
  const [name, ...args] = call
  const invocation = readInvocation(args)
  const { text = invocation.operands[0] ?? '', hasProfile = false, variables = {} } = more
  return commandOf({ name, invocation, text, hasProfile, variables })
}

describe('how a shell reads its own options', () => {
  const calls: [string[], object][] = [
    [['-c', 'ls'], { source: 'text', operands: ['ls'], plain: true }],
    [['-lc', 'ls'], { source: 'text', operands: ['ls'], login: true, plain: true }],
    [['-euo', 'pipefail', '-c', 'ls', 'x'], { source: 'text', operands: ['ls', 'x'], plain: true }],
    [['-oc', 'pipefail', 'ls'], { source: 'text', operands: ['ls'], plain: true }],
    [['-c', '-e', '--', '-x'], { source: 'text', operands: ['-x'], plain: true }],
    [['--norc', '--noprofile', '-c', 'ls'], { source: 'text', operands: ['ls'], plain: true }],
    [['--login', '-c', 'ls'], { source: 'text', login: true, plain: true }],
    [['--rcfile', '-c', 'ls'], { source: 'file', operands: ['ls'], plain: false }],
    [['-o', 'xtrace', '-c', 'ls'], { source: 'text', plain: false }],
    [['-O', 'extglob', '-c', 'ls'], { source: 'text', operands: ['ls'], plain: false }],
    [['+e', '-c', 'ls'], { source: 'text', plain: false }],
    [['-xc', 'ls'], { source: 'text', plain: false }],
    [['-ic', 'ls'], { source: 'text', interactive: true, plain: false }],
    [['-i'], { source: 'input', interactive: true }],
    [[], { source: 'input', operands: [] }],
    [['-'], { source: 'input', operands: [] }],
    [['-s', 'a', 'b'], { source: 'input', operands: ['a', 'b'], plain: true }],
    [['build.sh', '-c', 'ls'], { source: 'file', operands: ['build.sh', '-c', 'ls'], plain: true }],
    [['--', '-c'], { source: 'file', operands: ['-c'] }],
  ]
  test.each(calls)('%j', (args, expected) => expect(readInvocation(args)).toMatchObject(expected))
})

describe('what is asked about', () => {
  test('is the text alone where bash runs just that', () => {
    for (const call of [
      ['bash', '-c', 'git push'],
      ['bash', '-lc', 'git push'],
      ['bash', '-euo', 'pipefail', '-c', 'git push'],
    ] as const)
      expect(asked(call)).toBe('git push')
    expect(asked(['bash', '-s'], { text: 'git push' })).toBe('git push')
  })

  test('is the call in full where more comes with it', () => {
    expect(asked(['bash', '-c', 'echo $0', "it's"])).toBe(`bash -c 'echo $0' 'it'\\''s'`)
    expect(asked(['bash', '-xc', 'ls'])).toBe('bash -xc ls')
    expect(asked(['bash', '-lc', 'ls'], { hasProfile: true })).toBe('bash -lc ls')
    expect(asked(['bash', './x.sh', 'a b'], { text: 'ls\nwc $1' })).toBe(`bash -c 'ls\nwc $1' ./x.sh 'a b'`)
    expect(asked(['bash', '-x', 'x.sh'], { text: 'ls' })).toBe('bash -x -c ls x.sh')
    expect(asked(['bash', '-s', 'a'], { text: 'ls' })).toBe('bash -c ls bash a')
    expect(asked(['sh', '-c', 'ls'])).toBe('sh -c ls')
    expect(asked(['bash', '-c', 'ls'], { variables: { BASH_ENV: 'x', PS4: '$(curl x)' } })).toBe(
      `env BASH_ENV=x 'PS4=$(curl x)' bash -c ls`,
    )
  })

  test('is not harmless when what comes with it may run something else', () => {
    const harmless: [string, ...string[]][] = [
      ['bash', '-c', 'ls'],
      ['bash', '-lc', 'ls'],
      ['bash', '-c', 'ls', 'x', '$(curl x)'],
      ['sh', '-c', 'ls; pwd'],
    ]
    for (const call of harmless) expect(judgeShell(asked(call))).toEqual({ harmless: true })
    const function_ = { 'BASH_FUNC_ls%%': '() { curl x; }' }
    const others = [
      asked(['bash', '-lc', 'ls'], { hasProfile: true }),
      asked(['bash', '-c', '-l', 'ls'], { hasProfile: true }),
      asked(['bash', '--login', 'x.sh'], { text: 'ls', hasProfile: true }),
      asked(['bash', '-xc', 'ls']),
      asked(['bash', '-ic', 'ls']),
      asked(['bash', '-rcfile', 'evil', '-c', 'ls']),
      asked(['bash', '--rcfile', 'evil', '-ic', 'ls']),
      asked(['bash', '--init-file', 'evil', '-c', 'ls']),
      asked(['bash', '-O', 'expand_aliases', '-c', 'ls']),
      asked(['bash', '-c', '$0 x', 'curl']),
      asked(['bash', '-c', '"$@"', 'x', 'curl']),
      asked(['bash', '-c', 'eval "$1"', 'x', 'ls']),
      asked(['bash', 'x.sh', 'curl'], { text: '$1 x' }),
      asked(['bash', '-c', 'ls'], { variables: { BASH_ENV: 'evil' } }),
      asked(['bash', '-c', 'ls'], { variables: { SHELLOPTS: 'xtrace', PS4: '$(curl x)' } }),
      asked(['bash', '-c', 'ls'], { variables: function_ }),
      asked(['sh', '-c', 'ls'], { variables: function_ }),
      // What bash takes for one word is the end of a word to other shells.
      asked(['sh', '-c', "echo $'a\\' ; curl x ; echo '"]),
    ]
    for (const command of others) expect([command, judgeShell(command).harmless]).toEqual([command, false])
  })
})
