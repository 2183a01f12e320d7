import type * as Library from 'fake-indexeddb'

/** An IndexedDB in memory, and what has changed in it. */

/** As far as it is used here; TypeScript has IndexedDB only for browsers. */
export interface IndexedDb {
  indexedDB: {
    open(name: string, version?: number): OpenRequest
    deleteDatabase(name: string): unknown
  }
  IDBObjectStore: { prototype: Methods<ObjectStore, 'put' | 'add' | 'delete' | 'clear'> }
  IDBCursor: { prototype: Methods<Cursor, 'update' | 'delete'> }
}
type Methods<This, Name extends string> = Record<Name, (this: This, ...args: unknown[]) => unknown>
interface Request<T> {
  result: T
  error: Error | null
  onsuccess: (() => void) | null
  onerror: (() => void) | null
}
interface OpenRequest extends Request<Database> {
  onupgradeneeded: (() => void) | null
}
export interface Database {
  name: string
  version: number
  objectStoreNames: Iterable<string>
  createObjectStore(name: string): ObjectStore
  transaction(stores: readonly string[], mode: 'readonly' | 'readwrite'): Transaction
  close(): void
}
export interface Transaction {
  db: Database
  objectStore(name: string): ObjectStore
  abort(): void
  addEventListener(event: 'complete', listener: () => void): void
}
interface ObjectStore {
  name: string
  transaction: Transaction
  indexNames: Iterable<string>
  index(name: string): { keyPath: string | string[]; unique: boolean; multiEntry: boolean }
  createIndex(
    name: string,
    keyPath: string | string[],
    how: { unique: boolean; multiEntry: boolean },
  ): unknown
  get(key: unknown): Request<unknown>
  getAllKeys(): Request<unknown[]>
  count(): Request<number>
  put(value: unknown, key: unknown): unknown
  delete(key: unknown): unknown
  clear(): unknown
}
interface Cursor {
  source: ObjectStore | { objectStore: ObjectStore }
}

/** By the name of a database: its records that have changed, as JSON of store and key; a store alone is all of it. */
export const changed = new Map<string, Set<string>>()
const watched = new WeakSet<object>()

/** Notes what is written, once its transaction is complete: what was rolled back has not changed. */
export function watch(idb: IndexedDb): void {
  if (watched.has(idb.IDBObjectStore)) return
  watched.add(idb.IDBObjectStore)
  const note = ({ name, transaction }: ObjectStore, key?: unknown) => {
    const what = JSON.stringify(typeof key === 'string' ? [name, key] : [name])
    transaction.addEventListener('complete', () => changed.get(transaction.db.name)?.add(what))
  }
  const stores = idb.IDBObjectStore.prototype
  for (const [method, keyAt] of [
    ['put', 1],
    ['add', 1],
    ['delete', 0],
    ['clear', 0],
  ] as const) {
    const original = stores[method]
    stores[method] = function (this: ObjectStore, ...args) {
      note(this, args[keyAt])
      return Reflect.apply(original, this, args)
    }
  }
  const cursors = idb.IDBCursor.prototype
  for (const method of ['update', 'delete'] as const) {
    const original = cursors[method]
    cursors[method] = function (this: Cursor, ...args) {
      note('objectStore' in this.source ? this.source.objectStore : this.source)
      return Reflect.apply(original, this, args)
    }
  }
}

export const result = <T>(request: Request<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error)
  })
export const complete = (transaction: Transaction): Promise<void> =>
  new Promise(resolve => transaction.addEventListener('complete', resolve))

const globals = [
  'indexedDB',
  'IDBCursor',
  'IDBCursorWithValue',
  'IDBDatabase',
  'IDBKeyRange',
  'IDBOpenDBRequest',
  'IDBRequest',
] as const satisfies (keyof typeof Library)[]

/** The crypto library looks for IndexedDB where a browser has it. What it finds there has to be the one that is watched. */
export function offer(idb: IndexedDb & Partial<Record<(typeof globals)[number], unknown>>): void {
  for (const name of globals)
    Object.defineProperty(globalThis, name, { value: idb[name], configurable: true })
}
