import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startDaemon } from '@hatchway/host'
import { type Config, loadConfig } from '@hatchway/host/config'
import { expect, onTestFinished } from 'vitest'

const bin = join(import.meta.dirname, '..', 'bin', 'hatchway.mjs')
/** Nothing of whoever runs the tests. */
const env = { PATH: process.env.PATH, HOME: tmpdir(), TZ: 'UTC', HATCHWAY_LOG_LEVEL: 'silent' }

export const node = (args: readonly string[], heard: (text: string) => void = () => {}) =>
  new Promise<{ code: number; out: string; err: string }>(resolve => {
    const options = { env, cwd: tmpdir(), maxBuffer: 2 ** 26 }
    const child = execFile(process.execPath, args, options, (error, out, err) =>
      resolve({ code: typeof error?.code === 'number' ? error.code : error ? -1 : 0, out, err }),
    )
    child.stdout?.on('data', heard)
    child.stdin?.end()
  })

/** A data directory that goes with the test, a daemon on it without agents, and one of the commands. */
export async function openCommand(command: string, settings: Partial<Config> = {}) {
  const data = mkdtempSync(join(tmpdir(), `hatchway-cli-${command}-`))
  const config = await loadConfig({ data, file: undefined })
  const begin = async () => {
    const begun = await startDaemon({
      ...config,
      durability: 'process',
      logLevel: 'silent',
      agents: { ...config.agents, enabled: 'no' },
      web: { ...config.web, enabled: 'no' },
      ...settings,
    })
    await begun.agentsReady
    return begun
  }
  const daemon = await begin()
  let running: typeof daemon | undefined = daemon
  const stop = async () => {
    await running?.stop()
    running = undefined
  }
  const startAgain = async () => {
    running = await begin()
  }
  onTestFinished(async () => {
    await stop()
    rmSync(data, { recursive: true })
  })
  /** before what may follow `--` */
  const line = (args: string[]) => {
    const end = args.includes('--') ? args.indexOf('--') : args.length
    return [bin, command, ...args.slice(0, end), '--data', data, ...args.slice(end)]
  }
  const run = (...args: string[]) => node(line(args))
  /** what a command has printed so far, and its end */
  const begun = (...args: string[]) => {
    let out = ''
    const ended = node(line(args), text => {
      out += text
    })
    return { out: () => out, ended }
  }
  const json = async (...args: string[]): Promise<unknown> => {
    const { code, out, err } = await run(...args, '--json')
    expect({ code, err }).toEqual({ code: 0, err: '' })
    return JSON.parse(out)
  }
  return { data, host: daemon.host, stop, startAgain, run, begun, json }
}
