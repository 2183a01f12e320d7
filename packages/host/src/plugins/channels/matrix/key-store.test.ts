import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { layoutOf } from '../../../base/layout.ts'
import { createLibrary } from '../library.ts'
import { complete, type IndexedDb, result } from './indexed-db.ts'
import { openKeyStore } from './key-store.ts'
import { matrix } from './kind.ts'

const session = { given: 'https://a', server: 'https://a', user: '@a:b', device: 'ONE', token: 't' }

async function begin() {
  const folder = mkdtempSync(join(tmpdir(), 'hatchway-keys-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const idb = await createLibrary(layoutOf('/nowhere'), matrix)<IndexedDb>('fake-indexeddb')
  /** as the crypto library opens it, which makes its tables where there are none */
  const open = async () => {
    const keys = openKeyStore(folder, idb)
    onTestFinished(keys.close)
    await keys.load()
    const opening = idb.indexedDB.open(`${keys.name}::matrix-sdk-crypto`, 3)
    opening.onupgradeneeded = () => {
      opening.result
        .createObjectStore('sessions')
        .createIndex('by', 'by', { unique: false, multiEntry: false })
      opening.result.createObjectStore('account')
    }
    const db = await result(opening)
    const change = async (
      work: (store: ReturnType<ReturnType<typeof db.transaction>['objectStore']>) => void,
    ) => {
      const transaction = db.transaction(['sessions'], 'readwrite')
      work(transaction.objectStore('sessions'))
      await complete(transaction)
    }
    const all = async () => {
      const store = db.transaction(['sessions'], 'readonly').objectStore('sessions')
      const found: Record<string, unknown> = {}
      for (const key of await result(store.getAllKeys())) found[String(key)] = await result(store.get(key))
      return found
    }
    return { keys, db, change, all }
  }
  return { folder, open }
}

test('what was saved is there again, and what was not is not', async () => {
  const { folder, open } = await begin()
  const first = await open()
  await first.change(store => {
    store.put({ by: 'ann', key: new Uint8Array([0, 255]) }, 'a')
    store.put({ by: 'bob' }, 'b')
    store.put({ by: 'eve' }, 'c')
  })
  await first.keys.save()
  await first.change(store => {
    store.delete('b')
    store.put({ by: 'ann', key: 'newer' }, 'c')
  })
  await first.keys.save()
  await first.change(store => store.put('lost with the process', 'd'))
  const second = await open()
  expect(await second.all()).toEqual({
    a: { by: 'ann', key: new Uint8Array([0, 255]) },
    c: { by: 'ann', key: 'newer' },
  })
  const index = second.db.transaction(['sessions'], 'readonly').objectStore('sessions').index('by')
  expect(index).toMatchObject({ keyPath: 'by', unique: false })
  await second.change(store => {
    store.clear()
    store.put('only this', 'e')
  })
  await second.keys.save()
  expect(await (await open()).all()).toEqual({ e: 'only this' })
  expect(statSync(join(folder, 'matrix.db')).mode & 0o777).toBe(0o600)
})

test('a transaction that is rolled back changes nothing, and one that is open is saved whole or not at all', async () => {
  const { open } = await begin()
  const { keys, db, change } = await open()
  await change(store => store.put('old', 'a'))
  const rolledBack = db.transaction(['sessions'], 'readwrite')
  rolledBack.objectStore('sessions').put('never', 'a')
  rolledBack.abort()
  const both = db.transaction(['sessions', 'account'], 'readwrite')
  both.objectStore('sessions').put('new', 'b')
  // Asked for in the middle of it.
  const saved = keys.save()
  both.objectStore('account').put('new', 'b')
  await saved
  const next = await open()
  expect(await next.all()).toEqual({ a: 'old', b: 'new' })
  const account = next.db.transaction(['account'], 'readonly').objectStore('account')
  expect(await result(account.get('b'))).toBe('new')
})

test('the keys of a device go with it, and the identity of the account stays', async () => {
  const { open } = await begin()
  const { keys, change } = await open()
  const identity = { user: '@a:b', master: 'm', selfSigning: 's', userSigning: 'u' }
  keys.begin(session)
  keys.setIdentity(identity)
  await change(store => store.put('a key', 'a'))
  await keys.save()
  keys.begin({ ...session, token: 'newer' })
  expect(await (await open()).all()).toEqual({ a: 'a key' })
  keys.begin({ ...session, device: 'TWO' })
  const next = await open()
  expect(await next.all()).toEqual({})
  expect(next.keys.session()).toMatchObject({ device: 'TWO' })
  expect(next.keys.identity('@a:b')).toEqual(identity)
  expect(next.keys.identity('@else:b')).toBeUndefined()
})
