// biome-ignore-all lint/suspicious/noTemplateCurlyInString: there are shell commands in it

import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { corpus } from './corpus/index.ts'
import { judgeShell } from './judge.ts'

/*
 * Whether the corpus and the judgement are honest is for bash to say: each command runs in a folder of its own, with a
 * PATH on which curl is a script that leaves a mark and the rest are the system's own programs.
 */
const room = mkdtempSync(join(tmpdir(), 'hatchway-shell-'))
afterAll(() => rmSync(room, { recursive: true, force: true }))

const bash = ['/bin/bash', '/usr/bin/bash'].find(path => existsSync(path)) ?? ''
const version = bash && spawnSync(bash, ['-c', 'echo $BASH_VERSINFO'], { encoding: 'utf8' }).stdout.trim()
const isModern = Number(version) >= 5

const borrowed = `bash sh dash env ls cat rev xargs find sed awk sort seq split tar gzip perl git make tr base64 nohup timeout
  nice stdbuf setsid tee diff head tail wc cut uniq comm grep egrep jq basename dirname stat mkdir touch date id true
  false echo printf test pwd`
const found = new Set<string>()
const tools = join(room, 'tools')
mkdirSync(tools)
for (const name of borrowed.split(/\s+/)) {
  const path = ['/usr/bin', '/bin'].map(folder => join(folder, name)).find(file => existsSync(file))
  if (!path) continue
  found.add(name)
  symlinkSync(path, join(tools, name))
}
const missing = borrowed.split(/\s+/).filter(name => !found.has(name))
const needsMore = (command: string): boolean =>
  missing.some(name => new RegExp(`(?<![\\w.-])${name}(?![\\w.-])`).test(command))

let count = 0
/** Runs a command; whether curl was run, and which programs were looked for in vain. */
function run(command: string): { curl: boolean; lacking: string[] } {
  const folder = join(room, `${count++}`)
  mkdirSync(join(folder, 'bin'), { recursive: true })
  const [mark, lacking] = [join(folder, '..', `${count}.curl`), join(folder, '..', `${count}.lacking`)]
  writeFileSync(join(folder, 'bin', 'curl'), `#!/bin/sh\n: > '${mark}'\n`, { mode: 0o755 })
  const startup = join(room, 'startup')
  writeFileSync(startup, 'command_not_found_handle() { printf "%s\\n" "$1" >> "$LACKING"; return 127; }\n')
  // Without a terminal or a pipe: bash takes Node's for a network connection, and reads other start-up files then.
  spawnSync(bash, ['--norc', '--noprofile', '-c', command], {
    cwd: folder,
    env: { PATH: `${join(folder, 'bin')}:${tools}`, HOME: folder, LACKING: lacking, BASH_ENV: startup },
    stdio: 'ignore',
    timeout: 20_000,
  })
  const result = {
    curl: existsSync(mark),
    lacking: existsSync(lacking) ? readFileSync(lacking, 'utf8').trim().split('\n') : [],
  }
  rmSync(folder, { recursive: true, force: true })
  return result
}

describe.skipIf(!isModern)('bash itself', () => {
  it('runs curl for every command of the corpus that says so', () => {
    const claimed = corpus.filter(({ command, runsCurl }) => runsCurl && !needsMore(command))
    expect(claimed.length).toBeGreaterThan(250)
    expect(claimed.filter(({ command }) => !run(command).curl).map(({ command }) => command)).toEqual([])
  })

  it('does not run curl for any harmless command of the corpus', () => {
    const harmless = corpus.filter(({ expected }) => expected === 'harmless').map(({ command }) => command)
    expect(harmless.filter(command => run(command).curl)).toEqual([])
  })

  it('runs nothing that was not seen in harmless commands that were changed at random', () => {
    const random = randomFrom(20_240_613)
    const judged = new Map<string, readonly string[]>()
    for (let tries = 0; tries < 8_000; tries++) {
      const command = changed(random)
      const verdict = judgeShell(command)
      if (verdict.class === 'harmless' && /curl/.test(command)) judged.set(command, verdict.programs)
    }
    const sample = [...judged].slice(0, 250)
    expect(sample.length).toBe(250)
    const surprises = sample.filter(([command, programs]) => {
      const { curl, lacking } = run(command)
      return curl || lacking.some(name => !programs.includes(name))
    })
    expect(surprises).toEqual([])
  })
})

/** The same numbers in every run, so that a failure can be seen again. */
function randomFrom(seed: number): (below: number) => number {
  let state = seed
  return below => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) % below
  }
}

/** Harmless, and curl in a place where it does not run: a small change may make it run. */
const seeds = [
  "echo 'curl x' a",
  'echo "curl $x" b',
  'echo a # curl x\nls',
  'cat <<E\ncurl x\nE\nls',
  "cat <<'E' > a.txt\n$(curl x)\nE\necho b",
  'cat <<-E\n\tcurl\n\tE\nls',
  'for x in a \'b; curl\'; do echo "$x"; done',
  "echo $(echo 'curl') | cat",
  'echo `echo curl`',
  'case curl in curl) echo a;; *) ls;; esac',
  '[[ curl == c* && -n $x ]] && echo y',
  'x=\'curl y\' ; echo "$x"',
  'echo ${x:-curl} ${x%curl} ${#x}',
  "bash -c 'echo curl; ls' curl",
  'find . -name curl -exec echo curl {} +',
  'echo a | xargs -I{} echo curl {}',
  '(echo curl; ls) 2>&1 | cat',
  '{ echo curl; } > a.txt',
  'cat <(echo curl) curl # curl',
  'diff <(echo curl) <(echo x) # curl x\ncat a',
  'echo "$(echo "curl")"',
  'echo {curl,b} *curl ?curl',
  "echo $'curl\\n' \"a'curl'\"",
  "sed -n 's/curl/x/p;1,2p' a.txt",
  'ls \\\n  curl',
]
const pieces = [
  ...'"\'`$(){}[]<>|&;\\\n\t #!~*?=-,',
  ...[
    'curl',
    'curl x',
    '; curl x',
    '$(',
    '<(',
    '>(',
    '<<E\n',
    '\nE\n',
    '&&',
    '||',
    ';;',
    '((',
    '))',
    '[[ ',
    ' ]]',
    '\\\n',
  ],
  ...[
    '$x',
    '${',
    '${x:-',
    "$'",
    '$"',
    ' #',
    ')#',
    '0<(',
    '<<<',
    '{a,b}',
    '@(',
    '!',
    '! ',
    'if ',
    '; then ',
    '; fi',
    'eval ',
  ],
]

function changed(random: (below: number) => number): string {
  const pick = (list: readonly string[]): string => list[random(list.length)] ?? ''
  let text =
    random(3) === 0 ? `${pick(seeds)}${pick(['; ', '\n', ' | ', ' && '])}${pick(seeds)}` : pick(seeds)
  for (let changes = 1 + random(3); changes > 0; changes--) {
    const at = random(text.length + 1)
    const rest = text.slice(at + (random(3) === 0 ? 1 + random(3) : 0))
    text = text.slice(0, at) + (random(4) === 0 ? '' : pick(pieces)) + rest
  }
  return text
}
