import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { deserialize, serialize } from 'node:v8'
import { z } from 'zod'
import { openSqlite, rollBack } from '../../../base/sqlite.ts'
import {
  changed,
  complete,
  type Database,
  type IndexedDb,
  result,
  type Transaction,
  watch,
} from './indexed-db.ts'

/**
 * The keys of end-to-end encryption, and the session they belong to. The crypto library keeps its keys in IndexedDB, which
 * Node does not have. Here they are in an IndexedDB in memory, and SQLite has a copy of it:
 *
 *   load   fills the one in memory from the file, before the library opens it
 *   save   writes to the file what the library has changed since, in one transaction
 *
 * A key that is used before it is in the file is lost with the process. So `save` comes before whatever the world sees:
 * before each request to the server, and before it is noted how far was read.
 */
export interface KeyStore {
  /** the name by which the library opens it */
  name: string
  session(): Session | undefined
  /** undefined: it is over. The keys of another device go with it, but not the identity of the account. */
  begin(session: Session | undefined): void
  /** what vouches for the devices of an account */
  identity(user: string): Identity | undefined
  setIdentity(identity: Identity): void
  load(): Promise<void>
  save(): Promise<void>
  close(): Promise<void>
}

const sessionSchema = z.object({
  /** the address that people gave, and the one it led to */
  given: z.string(),
  server: z.string(),
  user: z.string(),
  device: z.string(),
  token: z.string(),
})
export type Session = z.output<typeof sessionSchema>

const identitySchema = z.object({
  user: z.string(),
  master: z.string(),
  selfSigning: z.string(),
  userSigning: z.string(),
})
type Identity = z.output<typeof identitySchema>
type Fact = 'session' | 'schema' | 'identity'

const schemaSchema = z.object({
  version: z.int(),
  stores: z.array(
    z.object({
      name: z.string(),
      indexes: z.array(
        z.object({
          name: z.string(),
          keyPath: z.union([z.string(), z.array(z.string())]),
          unique: z.boolean(),
          multiEntry: z.boolean(),
        }),
      ),
    }),
  ),
})

let opened = 0

export function openKeyStore(folder: string, idb: IndexedDb): KeyStore {
  watch(idb)
  const path = join(folder, 'matrix.db')
  // SQLite gives its other files the mode of this one.
  closeSync(openSync(path, 'a', 0o600))
  const file = openSqlite(path)
  file.exec(`
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
    CREATE TABLE IF NOT EXISTS records (store TEXT, key TEXT, value BLOB NOT NULL, PRIMARY KEY (store, key)) STRICT;
  `)
  // Each has a database of its own in memory: what a process before this one left there is not read.
  const name = `hatchway-${++opened}`
  const database = `${name}::matrix-sdk-crypto`
  let connection: Database | undefined
  let saving: Promise<void> = Promise.resolve()

  const fact = (of: Fact): unknown => {
    const value = file.prepare('SELECT value FROM facts WHERE name = ?').get(of)?.value
    return typeof value === 'string' ? JSON.parse(value) : undefined
  }
  const setFact = (of: Fact, value: unknown) =>
    file.prepare('INSERT OR REPLACE INTO facts VALUES (?, ?)').run(of, JSON.stringify(value))
  const atOnce = (work: () => void) => {
    file.exec('BEGIN IMMEDIATE')
    try {
      work()
      file.exec('COMMIT')
    } catch (error) {
      rollBack(() => file.exec('ROLLBACK'))
      throw error
    }
  }

  /** What has changed, as it is after the last complete transaction, and not in the middle of another. */
  const read = async (db: Database) => {
    const names = [...db.objectStoreNames]
    const transaction = db.transaction(names, 'readonly')
    await result(transaction.objectStore(names[0] ?? '').count())
    // It has begun, so nothing is written meanwhile.
    const taken = changed.get(database) ?? new Set()
    changed.set(database, new Set())
    const records: { store: string; key: string; value: Buffer | undefined }[] = []
    const whole: string[] = []
    for (const one of taken) {
      const [store = '', ...key]: string[] = JSON.parse(one)
      if (key.length === 0) whole.push(store)
      // The library may have done away with it when it brought its tables up to date.
      if (!names.includes(store)) continue
      const from = transaction.objectStore(store)
      for (const each of key.length > 0 ? key : await result(from.getAllKeys())) {
        const value = await result(from.get(each))
        const content = value === undefined ? undefined : serialize(value)
        records.push({ store, key: JSON.stringify(each), value: content })
      }
    }
    return { taken, records, whole, schema: schemaOf(db, transaction) }
  }

  const write = async () => {
    if (changed.get(database)?.size === 0) return
    connection ??= await result(idb.indexedDB.open(database))
    const { taken, records, whole, schema } = await read(connection)
    try {
      atOnce(() => {
        setFact('schema', schema)
        for (const store of whole) file.prepare('DELETE FROM records WHERE store = ?').run(store)
        for (const { store, key, value } of records) {
          if (value === undefined)
            file.prepare('DELETE FROM records WHERE store = ? AND key = ?').run(store, key)
          else file.prepare('INSERT OR REPLACE INTO records VALUES (?, ?, ?)').run(store, key, value)
        }
      })
    } catch (error) {
      // A disk that is full now may have room the next time.
      for (const one of taken) changed.get(database)?.add(one)
      throw error
    }
  }

  const session = () => sessionSchema.optional().parse(fact('session'))

  return {
    name,
    session,
    begin: next =>
      atOnce(() => {
        const before = session()
        if (before?.device !== next?.device || before?.user !== next?.user)
          file.exec("DELETE FROM facts WHERE name <> 'identity'; DELETE FROM records")
        if (next) setFact('session', next)
      }),
    identity(user) {
      const stored = identitySchema.optional().parse(fact('identity'))
      return stored?.user === user ? stored : undefined
    },
    setIdentity: identity => void setFact('identity', identity),
    async load() {
      const stored = fact('schema')
      if (stored !== undefined) {
        const { version, stores } = schemaSchema.parse(stored)
        const opening = idb.indexedDB.open(database, version)
        opening.onupgradeneeded = () => {
          for (const store of stores) {
            const created = opening.result.createObjectStore(store.name)
            for (const { name, keyPath, ...how } of store.indexes) created.createIndex(name, keyPath, how)
          }
        }
        const db = await result(opening)
        const transaction = db.transaction(
          stores.map(store => store.name),
          'readwrite',
        )
        for (const { store, key, value } of file.prepare('SELECT * FROM records').iterate())
          if (value instanceof Uint8Array)
            transaction.objectStore(String(store)).put(deserialize(value), JSON.parse(String(key)))
        await complete(transaction)
        db.close()
      }
      changed.set(database, new Set())
    },
    save() {
      saving = saving.then(write, write)
      return saving
    },
    async close() {
      await saving.catch(() => {})
      connection?.close()
      file.close()
      changed.delete(database)
      // Happens once the library has let go of it; nobody waits for memory.
      idb.indexedDB.deleteDatabase(database)
    },
  }
}

const schemaOf = ({ version }: Database, transaction: Transaction): z.output<typeof schemaSchema> => ({
  version,
  stores: [...transaction.db.objectStoreNames].map(name => {
    const store = transaction.objectStore(name)
    return {
      name,
      indexes: [...store.indexNames].map(index => {
        const { keyPath, unique, multiEntry } = store.index(index)
        return { name: index, keyPath, unique, multiEntry }
      }),
    }
  }),
})
