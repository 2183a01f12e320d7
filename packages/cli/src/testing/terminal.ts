import { execFile, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test, vi } from 'vitest'

const hasTmux = spawnSync('tmux', ['-V']).status === 0

/** Where tmux is missing, these are skipped by name; where everything has to run, they fail. */
export const onTerminal = hasTmux || process.env.CI === 'true' ? test : test.skip

const bin = join(import.meta.dirname, '..', '..', 'bin', 'hatchway.mjs')
const patience = { timeout: 60_000, interval: 50 }
const execute = promisify(execFile)

/** A shell on a real terminal of its own, as tmux makes it, with `hatchway` as a command. */
export async function openTerminal({
  columns = 100,
  rows = 30,
  env = {},
}: {
  columns?: number
  rows?: number
  env?: Record<string, string>
} = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'hw-tmux-'))
  const tmux = async (...args: string[]) =>
    (await execute('tmux', ['-S', join(folder, 'socket'), '-f', '/dev/null', ...args])).stdout
  const variables = Object.entries({
    PATH: process.env.PATH ?? '',
    HOME: folder,
    TZ: 'UTC',
    LANG: 'C.UTF-8',
    TERM: 'screen-256color',
    PS1: '$ ',
    HATCHWAY_LOG_LEVEL: 'silent',
    ...env,
  }).map(([name, value]) => `${name}=${value}`)
  await tmux('-u', 'new-session', '-d', '-x', `${columns}`, '-y', `${rows}`, 'env', '-i', ...variables, 'sh')
  onTestFinished(async () => {
    await tmux('kill-server')
    rmSync(folder, { recursive: true, force: true })
  })

  const record = join(folder, 'record')
  const screen = () => tmux('capture-pane', '-p')
  const type = (text: string) => tmux('send-keys', '-l', text)
  const press = (...keys: string[]) => tmux('send-keys', ...keys)
  return {
    screen,
    /** with colours, as sequences */
    painted: () => tmux('capture-pane', '-p', '-e'),
    type,
    press,
    async run(...args: string[]) {
      await type(['hatchway', ...args].join(' '))
      await press('Enter')
    },
    /** as one process, which the shell can stop and take up again */
    async runAlone(...args: string[]) {
      await type([process.execPath, bin, ...args].join(' '))
      await press('Enter')
    },
    shell: async () => {
      await vi.waitFor(async () => expect(await screen()).toMatch(/^\$/), patience)
      await type(`hatchway() { '${process.execPath}' '${bin}' "$@"; echo "left with $?"; }; echo before`)
      await press('Enter')
      await vi.waitFor(async () => expect(await screen()).toMatch(/^before$/m), patience)
    },
    shows: (what: string | RegExp) => vi.waitFor(async () => expect(await screen()).toMatch(what), patience),
    hides: (what: string | RegExp) =>
      vi.waitFor(async () => expect(await screen()).not.toMatch(what), patience),
    resize: (wide: number, high: number) => tmux('resize-window', '-x', `${wide}`, '-y', `${high}`),
    /** whether the other screen is on, the cursor is shown, and long lines wrap */
    mode: async () =>
      (await tmux('display-message', '-p', '#{alternate_on} #{cursor_flag} #{wrap_flag}')).trim(),
    /** of the program that has the terminal */
    processOf: async (name: string) => {
      const shell = Number(await tmux('display-message', '-p', '#{pane_pid}'))
      const { stdout } = await execute('ps', ['-o', 'pid=,args=', '--ppid', String(shell)])
      return Number(
        stdout
          .split('\n')
          .find(line => line.includes(name))
          ?.trim()
          .split(' ')[0],
      )
    },
    /** from now on, what was written to the terminal */
    async recorded() {
      await tmux('pipe-pane', '-o', `cat >> '${record}'`)
      return () => (existsSync(record) ? readFileSync(record, 'utf8') : '')
    },
  }
}
