import { describe, expect, it } from 'vitest'
import { corpus } from './corpus/index.ts'
import { judgeShell } from './judge.ts'
import { shellClasses } from './types.ts'

describe('the corpus', () => {
  it.each(corpus.map(({ command, expected }) => [expected, command] as const))(
    '%s: %j',
    (expected, command) => {
      expect(judgeShell(command)).toMatchObject({ class: expected })
    },
  )

  it('lets nothing pass that runs unseen code or reaches a network', () => {
    const passed = corpus.filter(
      ({ command, expected }) => expected !== 'harmless' && judgeShell(command).class === 'harmless',
    )
    expect(passed).toEqual([])
  })

  it('sees curl, or says that it does not see everything, wherever curl runs', () => {
    const missed = corpus.filter(({ command, runsCurl }) => {
      const { class: found, programs } = judgeShell(command)
      return (
        runsCurl && found !== 'hidden' && found !== 'unclear' && !programs.some(name => name.endsWith('curl'))
      )
    })
    expect(missed).toEqual([])
  })

  it('is large, half of it evasions, and names no command twice', () => {
    expect(corpus.length).toBeGreaterThanOrEqual(320)
    expect(corpus.filter(({ evasion }) => evasion).length).toBeGreaterThanOrEqual(corpus.length / 2)
    expect(new Set(corpus.map(({ command }) => command)).size).toBe(corpus.length)
    for (const kind of shellClasses) expect(corpus.some(({ expected }) => expected === kind)).toBe(true)
  })
})

describe('a verdict', () => {
  it('names every program, inside wrappers and substitutions too', () => {
    const { programs } = judgeShell('env x=1 ls "$(timeout 5 cat a)" | xargs -n1 wget & eval "ssh host"')
    expect(programs.toSorted()).toEqual(['cat', 'env', 'eval', 'ls', 'ssh', 'timeout', 'wget', 'xargs'])
  })

  it('gives the worst class and all reasons', () => {
    expect(judgeShell('ls; frobnicate; curl x; eval "$y"')).toEqual({
      class: 'hidden',
      reasons: [
        'frobnicate is not a program on the list',
        'curl can reach a network',
        'eval makes the shell run or believe something that cannot be seen here',
      ],
      programs: ['ls', 'frobnicate', 'curl', 'eval'],
    })
  })

  it('gives no reason for what is harmless', () => {
    expect(judgeShell('ls -l | wc -l')).toEqual({ class: 'harmless', reasons: [], programs: ['ls', 'wc'] })
  })

  it('quotes nothing of a command but the names of programs', () => {
    const secret = 'sk-ant-0123456789'
    for (const { command } of corpus) {
      const { reasons } = judgeShell(`x='${secret}' ; cat '${secret}' "${secret}" ; ${command}`)
      expect(reasons.join()).not.toContain(secret)
    }
    expect(JSON.stringify(judgeShell(`'${secret} x' a; ./${secret}\u202e; "a b" `))).not.toContain(secret)
    expect(judgeShell(`"curl x" a`).programs).toEqual([])
  })

  it('stays short, however many programs and reasons there are', () => {
    const { reasons, programs } = judgeShell(Array.from({ length: 500 }, (_, i) => `p${i}x`).join(';'))
    expect(reasons.length).toBeLessThan(20)
    expect(programs.length).toBeLessThan(100)
  })
})

describe('what is too much', () => {
  const opened = [
    '(',
    '{ ',
    '$(',
    '"$(',
    '`',
    '\\`',
    '${x:-',
    '${x/',
    '$((',
    '$[ ',
    '((',
    '[[ ( ',
    '[[ ! ',
    '<(',
    '@(',
  ]
  const repeated = [
    'cat <<E\n',
    '<<E ',
    'if ',
    'case x in a) ',
    'for x in a; do ',
    'while ',
    'coproc ',
    'f()',
    '! ',
    'a|',
  ]
  const plain = [
    'a&&',
    'a;',
    'a ',
    '# ',
    '*',
    '[',
    '\\',
    '\\\n',
    "$'",
    "'",
    '"',
    '{a,',
    'a[',
    'a=(',
    '>',
    '>a ',
    'env ',
  ]

  it.each([...opened, ...repeated, ...plain])('200,000 characters of %j are not read', part => {
    const whole = part.repeat(Math.ceil(200_000 / part.length))
    expect(judgeShell(whole)).toMatchObject({ class: 'unclear', programs: [] })
    expect(judgeShell(`echo ${whole}`)).toMatchObject({ class: 'unclear', programs: [] })
    expect(judgeShell(`bash -c "${whole}"`).class).toBe('unclear')
  })

  it.each([...opened, ...repeated, 'bash -c ', 'env ', 'eval ', 'timeout 1 ', 'xargs ', 'find . -exec '])(
    'many %j are judged, and what follows them is not lost',
    part => {
      for (const length of [30, 140, 1_000, 9_900])
        expect(judgeShell(`${part.repeat(length / part.length)} curl x`).class).not.toBe('harmless')
    },
  )

  it('what is nested too deeply is unclear, whatever is at the bottom', () => {
    for (const [open, close] of [
      ['(ls; ', ')'],
      ['{ ls; ', '; }'],
      ['echo $(', ')'],
      ['if true; then ', '; fi'],
      ['cat <(', ')'],
    ] as const) {
      expect(judgeShell(`${open.repeat(3)}ls${close.repeat(3)}`).class).toBe('harmless')
      expect(judgeShell(`${open.repeat(60)}ls${close.repeat(60)}`).class).toBe('unclear')
    }
  })

  it('takes another limit for the length', () => {
    expect(judgeShell('ls -la', { length: 5 }).class).toBe('unclear')
    expect(judgeShell('ls -la', { length: 6 }).class).toBe('harmless')
  })
})
