import { chmodSync, closeSync, existsSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { openSqlite, rollBack } from '../../../base/sqlite.ts'
import type {
  AuthenticationCreds,
  AuthenticationState,
  Baileys,
  SignalDataSet,
  SignalDataTypeMap,
} from './library.ts'

/**
 * The keys of the linked device, in a database that only the host's user can read. All that changes with one message
 * changes at once: a key that is used and not noted would make the next message unreadable.
 */
export interface Session {
  state: AuthenticationState
  saveCredentials(): void
  /** forgets the account, so that another can be linked */
  clear(): void
  close(): void
}

const fileName = 'session.db'

export function openSession(
  folder: string,
  { BufferJSON, initAuthCreds, proto }: Pick<Baileys, 'BufferJSON' | 'initAuthCreds' | 'proto'>,
): Session {
  const path = join(folder, fileName)
  // SQLite gives its other files the permissions that this one has.
  closeSync(openSync(path, 'a', 0o600))
  chmodSync(path, 0o600)
  const database = openSqlite(path, { waitMs: 5000 })
  database.exec(`
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    CREATE TABLE IF NOT EXISTS keys (type TEXT, id TEXT, value TEXT NOT NULL, PRIMARY KEY (type, id)) WITHOUT ROWID;
  `)
  const read = database.prepare('SELECT value FROM keys WHERE type = ? AND id = ?')
  const write = database.prepare('INSERT OR REPLACE INTO keys VALUES (?, ?, ?)')
  const remove = database.prepare('DELETE FROM keys WHERE type = ? AND id = ?')

  const storedValue = (type: string, id: string): object | string | undefined => {
    const value = read.get(type, id)?.value
    return typeof value === 'string' ? JSON.parse(value, BufferJSON.reviver) : undefined
  }
  const put = (type: string, id: string, value: unknown) =>
    value === null || value === undefined
      ? remove.run(type, id)
      : write.run(type, id, JSON.stringify(value, BufferJSON.replacer))

  const putAll = (data: SignalDataSet) => {
    database.exec('BEGIN IMMEDIATE')
    try {
      for (const [type, values] of Object.entries(data))
        for (const [id, value] of Object.entries(values ?? {})) put(type, id, value)
      database.exec('COMMIT')
    } catch (error) {
      rollBack(() => database.exec('ROLLBACK'))
      throw error
    }
  }

  const get = async <T extends keyof SignalDataTypeMap>(type: T, ids: string[]) => {
    const found: Record<string, SignalDataTypeMap[T]> = {}
    for (const id of ids) {
      const value = storedValue(type, id)
      if (value === undefined) continue
      const isShared = type === 'app-state-sync-key' && typeof value === 'object'
      // What is read back is what was written: the library's own types say what that was.
      found[id] = (
        isShared ? proto.Message.AppStateSyncKeyData.fromObject(value) : value
      ) as SignalDataTypeMap[T]
    }
    return found
  }

  // One whose linking was broken off is of no use: WhatsApp would take it for a device that was removed.
  const stored = storedValue('creds', '') as AuthenticationCreds | undefined
  const creds = stored?.account ? stored : initAuthCreds()
  if (!stored?.account) database.exec('DELETE FROM keys')
  return {
    state: { creds, keys: { get, set: async data => putAll(data) } },
    saveCredentials: () => void put('creds', '', creds),
    clear: () => database.exec('DELETE FROM keys'),
    close: () => database.close(),
  }
}

/** Keys that are forgotten at once. */
export function unlinkedSession({ initAuthCreds }: Pick<Baileys, 'initAuthCreds'>): Session {
  const nothing = () => {}
  return {
    state: { creds: initAuthCreds(), keys: { get: async () => ({}), set: nothing } },
    saveCredentials: nothing,
    clear: nothing,
    close: nothing,
  }
}

/** Who is linked, as far as is known without asking WhatsApp. */
export function linkedAccount(
  folder: string,
  { BufferJSON }: Pick<Baileys, 'BufferJSON'>,
): AuthenticationCreds['me'] | undefined {
  const path = join(folder, fileName)
  if (!existsSync(path)) return undefined
  const database = openSqlite(path, { waitMs: 5000, readOnly: true })
  try {
    const value = database.prepare("SELECT value FROM keys WHERE type = 'creds'").get()?.value
    if (typeof value !== 'string') return undefined
    const { me, account }: AuthenticationCreds = JSON.parse(value, BufferJSON.reviver)
    return account && me
  } finally {
    database.close()
  }
}
