import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createNames, post } from '@hatchway/spool'
import { layoutOf } from '../../../host/src/base/layout.ts'
import { openStore } from '../../../host/src/store/sqlite.ts'
import type { Random } from '../random.ts'

/**
 * What was posted and what must have become of it: every valid message delivered to the outbox exactly once, every
 * task there exactly once, every request answered, every bad file in errors/ exactly once, and nothing left over.
 */
export interface Ledger {
  /** posts one file, of a kind chosen by chance, into one of the groups */
  post(random: Random): void
  posted(): number
  waiting(): number
  /** whether files are still waiting, claimed, or unanswered */
  pending(): boolean
  /** what is not as it must be, once a daemon has finished everything */
  audit(): string[]
}

export interface LedgerGroup {
  folder: string
  jid: string
}

export function createLedger(data: string, groups: readonly LedgerGroup[]): Ledger {
  const layout = layoutOf(data)
  const messages = new Map<string, string>()
  const tasks = new Map<string, string>()
  const requests = new Map<string, { folder: string; ok: boolean }>()
  const refused = new Set<string>()
  const answered: { folder: string; body: string }[] = []
  const freshName = createNames()
  let count = 0

  const drop = (folder: string, directory: string, body: string, name = freshName()) => {
    post(join(layout.ipc, folder, directory), body, { name })
    count++
    return name
  }
  const envelope = (type: string, payload: object, id: string) =>
    JSON.stringify({ version: 1, id, type, payload, sent_at: new Date().toISOString() })

  const kinds: ((group: LedgerGroup, random: Random) => void)[] = [
    ({ folder, jid }) => {
      const text = `plain-${count}`
      messages.set(text, folder)
      drop(
        folder,
        'messages',
        JSON.stringify({
          type: 'message',
          chatJid: jid,
          text,
          groupFolder: folder,
          timestamp: new Date().toISOString(),
        }),
      )
    },
    ({ folder }) => {
      const text = `asked-${count}`
      const id = `r-${count}`
      messages.set(text, folder)
      requests.set(id, { folder, ok: true })
      const body = envelope('send_message', { text }, id)
      answered.push({ folder, body })
      drop(folder, 'tasks', body)
    },
    ({ folder }) => {
      const prompt = `task-${count}`
      const id = `r-${count}`
      tasks.set(prompt, folder)
      requests.set(id, { folder, ok: true })
      const body = envelope(
        'schedule_task',
        { prompt, schedule_type: 'interval', schedule_value: '3600000' },
        id,
      )
      answered.push({ folder, body })
      drop(folder, 'tasks', body)
    },
    // The same request again, as an agent does that saw no answer: it must change nothing.
    (_group, random) => {
      const again = answered[random.below(Math.max(1, answered.length))]
      if (again) drop(again.folder, 'tasks', again.body)
    },
    ({ folder }) => void refused.add(drop(folder, 'tasks', '{"type":"no_such_command"}')),
    ({ folder }) => {
      const id = `r-${count}`
      requests.set(id, { folder, ok: false })
      refused.add(
        drop(folder, 'tasks', envelope('register_group', { jid: 'x:y', name: 'n', folder: '../..' }, id)),
      )
    },
    ({ folder }) => void refused.add(drop(folder, 'messages', '{"type":"message","text":]')),
  ]

  /** files in the groups' directories that nobody has taken */
  const waiting = () =>
    groups
      .flatMap(({ folder }) => ['messages', 'tasks'].map(directory => join(layout.ipc, folder, directory)))
      .map(path => readdirSync(path).filter(name => name !== '.tmp').length)
      .reduce((sum, length) => sum + length, 0)

  return {
    post(random) {
      // Few tasks: what snapshots of very many cost is not the question here.
      const kind = random.chance(0.8) ? kinds[random.below(2)] : random.pick(kinds)
      kind?.(random.pick(groups), random)
    },
    posted: () => count,
    waiting,
    pending: () =>
      readdirSync(layout.spool, { recursive: true, withFileTypes: true }).some(
        entry => !entry.isDirectory(),
      ) || waiting() > 0,
    audit() {
      const problems: string[] = []
      const store = openStore({ path: layout.database, durability: 'process', prepare: false })
      const expectOnce = (
        what: string,
        expected: Map<string, string>,
        found: { key: string; group: string }[],
      ) => {
        const counts = new Map<string, number>()
        for (const { key, group } of found) {
          counts.set(key, (counts.get(key) ?? 0) + 1)
          if (expected.get(key) !== group)
            problems.push(`${what} ${key} belongs to ${group}, not ${expected.get(key)}`)
        }
        for (const key of expected.keys()) if (!counts.has(key)) problems.push(`${what} ${key} was lost`)
        for (const [key, times] of counts)
          if (times > 1) problems.push(`${what} ${key} took effect ${times} times`)
      }
      expectOnce(
        'message',
        messages,
        store.messages({}).map(row => ({ key: row.text, group: row.group })),
      )
      expectOnce(
        'task',
        tasks,
        store.tasks({}).map(task => ({ key: task.prompt, group: task.group })),
      )
      store.close()

      for (const [id, { folder, ok }] of requests) {
        const path = join(layout.ipc, folder, 'responses', `${id}.json`)
        if (!existsSync(path)) problems.push(`request ${id} has no answer`)
        else if (JSON.parse(readFileSync(path, 'utf8')).ok !== ok)
          problems.push(`request ${id} has the wrong answer`)
      }

      const errors = readdirSync(layout.errors)
      const kept = countByName(errors, '.error', refused)
      const reasons = countByName(errors, '.error.json', refused)
      for (const name of refused) {
        const found = kept.get(name) ?? 0
        const explained = reasons.get(name) ?? 0
        if (found !== 1 || explained !== 1) {
          problems.push(`refused file ${name} lies ${found} times in errors/, with ${explained} reasons`)
        }
      }
      if (errors.filter(entry => entry.endsWith('.error')).length !== refused.size) {
        problems.push(`errors/ holds other files than the ${refused.size} that had to be refused`)
      }

      for (const { folder } of groups) {
        for (const directory of ['messages', 'tasks', 'groups']) {
          for (const name of readdirSync(join(layout.ipc, folder, directory))) {
            if (name !== '.tmp') problems.push(`${folder}/${directory}/${name} was left behind`)
          }
        }
      }
      for (const entry of readdirSync(layout.spool, { recursive: true, withFileTypes: true })) {
        if (!entry.isDirectory()) problems.push(`${join(entry.parentPath, entry.name)} was left behind`)
      }
      return problems
    },
  }
}

/** How often each name is the last part of an entry with this ending. */
function countByName(
  entries: readonly string[],
  ending: string,
  names: ReadonlySet<string>,
): Map<string, number> {
  const counts = new Map<string, number>()
  for (const entry of entries) {
    if (!entry.endsWith(ending)) continue
    const whole = entry.slice(0, -ending.length)
    for (let dash = whole.indexOf('-'); dash >= 0; dash = whole.indexOf('-', dash + 1)) {
      const name = whole.slice(dash + 1)
      if (names.has(name)) counts.set(name, (counts.get(name) ?? 0) + 1)
    }
  }
  return counts
}
