import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { judgeShell } from './judge.ts'
import { programs } from './programs.ts'
import { corpus } from './testing/corpus/index.ts'

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

const harmless = corpus.filter(entry => entry.harmless).map(({ command }) => command)
const others = corpus.filter(entry => !entry.harmless).map(({ command }) => command)
const pieces = [
  ...'"\'`$(){}[]<>|&;\\\n\t #!~*?=-,:.%+@^0',
  ...[
    'curl x',
    '; curl x',
    ' > a',
    ' -o a',
    ' -i',
    ' -exec curl',
    ' -delete',
    ' --output=a',
    ' -w a',
    '2>&1',
    '&& ',
  ],
  ...[
    '$(',
    '${x',
    '<(',
    '<<E\n',
    '\nE\n',
    '|| ',
    ' -- ',
    "'s/a/b/e'",
    "'1e curl'",
    ' -n',
    '-e',
    'bash -c ',
    '/bin/',
  ],
]

/** Commands put together from the corpus, changed in a few places. */
function changed(random: (below: number) => number): string {
  const pick = (list: readonly string[]): string => list[random(list.length)] ?? ''
  const some = () => pick(random(4) === 0 ? others : harmless)
  let text = random(3) === 0 ? `${some()}${pick(['; ', '\n', ' | ', ' && ', ' || '])}${some()}` : some()
  for (let changes = 1 + random(3); changes > 0; changes--) {
    const at = random(text.length + 1)
    const rest = text.slice(at + (random(3) === 0 ? 1 + random(3) : 0))
    text = text.slice(0, at) + (random(4) === 0 ? '' : pick(pieces)) + rest
  }
  return text
}

test('no verdict costs more than a few steps for each character, whatever is asked', () => {
  const random = randomFrom(19_880_721)
  for (let tries = 0; tries < 3000; tries++) {
    let command = changed(random)
    // A part that is repeated makes a rule that looks back show itself.
    const at = random(command.length)
    const part = command.slice(at, at + 1 + random(8))
    command = `${command.slice(0, at)}${part.repeat(random(300))}${command.slice(at)}`
    const meter = { steps: 0 }
    judgeShell(command, meter)
    expect(meter.steps).toBeLessThanOrEqual(15 * command.length + 10)
  }
})

const tools = ['/usr/bin/bwrap', '/usr/bin/strace', '/bin/bash']
const missing = tools.filter(path => !existsSync(path))
const attempt = missing.length === 0 || process.env.CI ? test : test.skip
/** They would not end by themselves. */
const isEndless = (command: string) => /sleep|tail.*-[a-zA-Z]*[fF]|follow/.test(command)

attempt(
  'what is judged harmless runs nothing else, writes nothing and reaches nobody (needs bubblewrap and strace)',
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'hatchway-shell-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const [work, scripts] = [join(folder, 'work'), join(folder, 'scripts')]
    const files = {
      'a.txt': 'a\nfoo\n',
      'b.txt': 'b\n',
      'a.json': '{"a":{"b":1}}\n',
      '-o': '',
      'src/a.ts': 'foo\n',
    }
    mkdirSync(join(work, 'src'), { recursive: true })
    mkdirSync(scripts)
    for (const [name, text] of Object.entries(files)) writeFileSync(join(work, name), text)

    const random = randomFrom(20_240_613)
    const chosen = new Set<string>()
    for (let tries = 0; tries < 20_000 && chosen.size < 200; tries++) {
      const command = changed(random)
      if (judgeShell(command).harmless && !harmless.includes(command) && !isEndless(command))
        chosen.add(command)
    }
    expect(chosen.size).toBe(200)
    for (const [number, command] of [...chosen].entries())
      writeFileSync(join(scripts, `${String(number).padStart(3, '0')}`), command)

    const calls = join(folder, 'calls')
    const each =
      'for f in /scripts/*; do IFS= read -r -d "" c < "$f"; bash --norc --noprofile -c "$c" </dev/null >/dev/null 2>&1; done'
    const traced =
      'execve,openat,creat,mkdir,mkdirat,unlink,unlinkat,rename,renameat,renameat2,link,symlink,truncate,chmod,fchmodat,socket'
    const sandbox = [
      '--unshare-all',
      '--die-with-parent',
      '--clearenv',
      '--setenv',
      'PATH',
      '/usr/bin:/bin',
      '--setenv',
      'HOME',
      '/work',
    ]
    const mounts = [
      '--ro-bind',
      '/usr',
      '/usr',
      '--symlink',
      'usr/bin',
      '/bin',
      '--symlink',
      'usr/lib',
      '/lib',
      '--symlink',
      'usr/lib64',
      '/lib64',
    ]
    const rest = [
      '--dev',
      '/dev',
      '--proc',
      '/proc',
      '--bind',
      work,
      '/work',
      '--ro-bind',
      scripts,
      '/scripts',
      '--remount-ro',
      '/',
      '--chdir',
      '/work',
    ]
    const ran = spawnSync(
      'strace',
      [
        '-f',
        '-qq',
        '-e',
        'signal=none',
        '-e',
        `trace=${traced}`,
        '-o',
        calls,
        'bwrap',
        ...sandbox,
        ...mounts,
        ...rest,
        '/bin/bash',
        '-c',
        each,
      ],
      { stdio: 'ignore', timeout: 120_000 },
    )
    expect(ran.error).toBe(undefined)
    const lines = readFileSync(calls, 'utf8').split('\n')
    // What bubblewrap itself does comes before its bash.
    const begin = lines.findIndex(line => /execve\("\/bin\/bash"/.test(line))
    const seen = lines.slice(begin).filter(line => !/ = -1 /.test(line))
    const ranPrograms = seen.flatMap(line => /execve\("([^"]+)"/.exec(line)?.[1] ?? [])
    expect(ranPrograms.length).toBeGreaterThan(200)
    const allowed = new Set([...programs.keys(), 'bash', 'sh', 'dash'])
    expect(ranPrograms.filter(path => !allowed.has(path.replace(/^.*\//, '')))).toEqual([])
    const wrote = seen.filter(
      line =>
        /\b(?:creat|mkdir|unlink|rename|link|symlink|truncate|chmod|fchmod)\w*\(/.test(line) ||
        (/O_WRONLY|O_RDWR|O_CREAT/.test(line) && !/"\/dev\/(?:null|tty)"/.test(line)) ||
        /socket\(AF_(?!UNIX)/.test(line),
    )
    expect(wrote).toEqual([])
    const left = readdirSync(work, { recursive: true, withFileTypes: true })
    expect(left.filter(entry => entry.isFile()).length).toBe(Object.keys(files).length)
    for (const [name, text] of Object.entries(files))
      expect(readFileSync(join(work, name), 'utf8')).toBe(text)
  },
)
