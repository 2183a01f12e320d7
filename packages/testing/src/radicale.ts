import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findProgram } from '../../host/src/base/programs.ts'

/** A calendar server of a test's own, with everything it keeps in a temporary folder, gone afterwards. */
export interface Radicale {
  url: string
  makeCalendar(user: string, path: string, title?: string): Promise<void>
  put(user: string, calendar: string, name: string, text: string): Promise<void>
  /** undefined: there is none */
  get(user: string, calendar: string, name: string): Promise<string | undefined>
  /** the names of the objects in a calendar */
  list(user: string, calendar: string): Promise<string[]>
  /** it takes connections and answers nothing until it goes on */
  pause(): void
  goOn(): void
  /** it ends in the middle of whatever it does */
  kill(): Promise<void>
  begin(): Promise<void>
  stop(): Promise<void>
}

export const passwordOf = (user: string): string => `${user}’s pässword: 1`

export const isRadicaleMissing = (): boolean => findProgram('radicale') === undefined

export async function startRadicale(users: readonly string[]): Promise<Radicale> {
  const program = findProgram('radicale')
  if (program === undefined) throw new Error('radicale is not installed')
  const home = mkdtempSync(join(tmpdir(), 'hatchway-radicale-'))
  writeFileSync(join(home, 'users'), users.map(user => `${user}:${passwordOf(user)}\n`).join(''))
  let server: ChildProcess | undefined
  let port = 0

  const begin = async () => {
    const config = join(home, 'config')
    writeFileSync(
      config,
      [
        `[server]\nhosts = 127.0.0.1:${port}`,
        `[auth]\ntype = htpasswd\nhtpasswd_filename = ${home}/users\nhtpasswd_encryption = plain\ndelay = 0`,
        `[storage]\nfilesystem_folder = ${home}/data`,
        '[web]\ntype = none',
        '[logging]\nlevel = info\n',
      ].join('\n'),
    )
    const started = spawn(program, ['--config', config], { stdio: ['ignore', 'ignore', 'pipe'] })
    server = started
    let output = ''
    port = await new Promise<number>((resolve, reject) => {
      started.stderr.on('data', chunk => {
        output += chunk
        const found = /Listening on '[^']*:(\d+)'/.exec(output)?.[1]
        if (found !== undefined && output.includes('server ready')) resolve(Number(found))
      })
      started.on('error', reject)
      started.on('exit', () => reject(new Error(`radicale ended: ${output.slice(-2000)}`)))
    })
  }
  const endBy = async (...signals: NodeJS.Signals[]) => {
    const ending = server
    if (!ending || ending.exitCode !== null || ending.signalCode !== null) return
    const over = new Promise(resolve => ending.once('exit', resolve))
    for (const signal of signals) ending.kill(signal)
    await over
  }
  const ask = async (user: string, method: string, path: string, body?: string, headers = {}) => {
    const secret = Buffer.from(`${user}:${passwordOf(user)}`).toString('base64')
    const authorization = `Basic ${secret}`
    const init = { method, headers: { authorization, ...headers }, ...(body === undefined ? {} : { body }) }
    const response = await fetch(`http://127.0.0.1:${port}${path}`, init)
    const text = await response.text()
    if (!response.ok && response.status !== 404)
      throw new Error(`${method} ${path}: ${response.status} ${text}`)
    return { status: response.status, text }
  }
  await begin()
  return {
    get url() {
      return `http://127.0.0.1:${port}/`
    },
    async makeCalendar(user, path, title = path) {
      await ask(
        user,
        'MKCALENDAR',
        `/${user}/${path}/`,
        `<?xml version="1.0"?><c:mkcalendar xmlns:c="urn:ietf:params:xml:ns:caldav" xmlns:d="DAV:"><d:set><d:prop><d:displayname>${title}</d:displayname></d:prop></d:set></c:mkcalendar>`,
      )
    },
    async put(user, calendar, name, text) {
      const body = text.trim().replaceAll(/\r?\n\s*/g, '\r\n')
      await ask(user, 'PUT', `/${user}/${calendar}/${name}`, `${body}\r\n`, {
        'content-type': 'text/calendar',
      })
    },
    async get(user, calendar, name) {
      const { status, text } = await ask(user, 'GET', `/${user}/${calendar}/${name}`)
      return status === 404 ? undefined : text
    },
    async list(user, calendar) {
      const { text } = await ask(user, 'PROPFIND', `/${user}/${calendar}/`, undefined, { depth: '1' })
      return [...text.matchAll(/<href>[^<]*\/([^</]+)<\/href>/g)].map(([, name]) => name ?? '')
    },
    pause: () => void server?.kill('SIGSTOP'),
    goOn: () => void server?.kill('SIGCONT'),
    kill: () => endBy('SIGKILL'),
    begin,
    async stop() {
      await endBy('SIGCONT', 'SIGTERM')
      rmSync(home, { recursive: true, force: true })
    },
  }
}
