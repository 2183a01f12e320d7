import { AsyncLocalStorage } from 'node:async_hooks'
import type { Baileys, SignalKeyStoreWithTransaction, SocketConfig } from './library.ts'
import { quietly } from './quiet.ts'

type MakeRepository = SocketConfig['makeSignalRepository']
type Repository = ReturnType<MakeRepository>

const never = new Promise<never>(() => {})

/**
 * What the library encrypts and decrypts with, so that nothing is lost, whoever is killed when.
 *
 * The library sends in one transaction, from the first question to WhatsApp until the message is sent, and hears in another.
 * Each has read the keys of a person for itself, and what the one commits, the other overwrites: then nobody can read what
 * comes next. Here each use of keys is a transaction of its own, whatever surrounds it, and there is one at a time. It waits
 * for the disk alone, so nobody is held up by it. Therefore:
 *
 * - What is sent was encrypted with keys that are kept before it is sent. The answer to it can be read, and no key is used
 *   for two messages.
 * - A message is read first, and its keys stay as they were. Then it is stored, which may take long where it has a file. Then
 *   it is decrypted once more, and now the keys are changed. The library tells WhatsApp that it has arrived after that. Whoever
 *   is killed before gets it again, and can still read it.
 */
export function createCipher(
  library: Baileys,
  options: {
    take(cipher: Uint8Array, plain: Uint8Array): Promise<void>
    fail(error: unknown): void
    isOver(): boolean
  },
): MakeRepository {
  const outside = AsyncLocalStorage.snapshot()
  const make = library.DEFAULT_CONNECTION_CONFIG.makeSignalRepository
  return (auth, logger, findLids) => {
    const repository = make(auth, logger, findLids)
    // The library gives it keys that can do transactions, whatever its type says.
    const keys = auth.keys as SignalKeyStoreWithTransaction
    // These two cannot ask WhatsApp for the other id of a person: it would be asked while everybody waits.
    const writer = make(auth, logger)
    const reader = make({ creds: auth.creds, keys: unchanging(keys) }, logger)

    // One lock for all people. A person has two ids, so locks by id could be two for the same keys. And the cipher has a queue
    // for each person: what waits there is done in the transaction of whoever was first.
    const alone = <T>(work: () => Promise<T>): Promise<T> =>
      outside(() => quietly(() => keys.transaction(work, 'cipher')))
    const named = async <T extends { jid: string }>(given: T): Promise<T> => ({
      ...given,
      jid: (await repository.lidMapping.getLIDForPN(given.jid)) ?? given.jid,
    })
    const decrypt = async (cipher: Uint8Array, using: (one: Repository) => Promise<Uint8Array>) => {
      const plain = await alone(() => using(reader))
      try {
        await outside(() => options.take(cipher, plain))
      } catch (error) {
        options.fail(error)
      }
      if (options.isOver()) await never
      return alone(() => using(writer))
    }
    return {
      ...repository,
      async decryptMessage(given) {
        const message = await named(given)
        return decrypt(given.ciphertext, one => one.decryptMessage(message))
      },
      decryptGroupMessage: given => decrypt(given.msg, one => one.decryptGroupMessage(given)),
      async encryptMessage(given) {
        const message = await named(given)
        return alone(() => writer.encryptMessage(message))
      },
      async injectE2ESession(given) {
        const session = await named(given)
        return alone(() => writer.injectE2ESession(session))
      },
      encryptGroupMessage: given => alone(() => writer.encryptGroupMessage(given)),
      getSenderKeyDistributionMessage: given => alone(() => writer.getSenderKeyDistributionMessage(given)),
      processSenderKeyDistributionMessage: given =>
        alone(() => writer.processSenderKeyDistributionMessage(given)),
      migrateSession: (from, to) => alone(() => writer.migrateSession(from, to)),
      deleteSession: jids => alone(() => writer.deleteSession(jids)),
      close() {
        for (const one of [repository, writer, reader]) one.close?.()
      },
    }
  }
}

/** The same keys, which stay as they are. */
const unchanging = (keys: SignalKeyStoreWithTransaction): SignalKeyStoreWithTransaction => ({
  ...keys,
  set: async () => {},
  transaction: work => work(),
})
