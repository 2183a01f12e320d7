// biome-ignore-all lint/suspicious/noTemplateCurlyInString: there are shell commands in it

import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { corpus } from './testing/corpus/index.ts'

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
/** Runs a command; whether curl was run. */
function run(command: string): { curl: boolean } {
  const folder = join(room, `${count++}`)
  mkdirSync(join(folder, 'bin'), { recursive: true })
  const mark = join(folder, '..', `${count}.curl`)
  writeFileSync(join(folder, 'bin', 'curl'), `#!/bin/sh\n: > '${mark}'\n`, { mode: 0o755 })
  // Without a terminal or a pipe: bash takes Node's for a network connection, and reads other start-up files then.
  spawnSync(bash, ['--norc', '--noprofile', '-c', command], {
    cwd: folder,
    env: { PATH: `${join(folder, 'bin')}:${tools}`, HOME: folder },
    stdio: 'ignore',
    timeout: 20_000,
  })
  const result = { curl: existsSync(mark) }
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
    const harmless = corpus.filter(entry => entry.harmless).map(({ command }) => command)
    expect(harmless.filter(command => run(command).curl)).toEqual([])
  })
})
