import { AsyncLocalStorage } from 'node:async_hooks'
import type { Baileys, SignalKeyStoreWithTransaction, SocketConfig } from './library.ts'
import { quietly } from './quiet.ts'

const never = new Promise<never>(() => {})

/**
 * The library tells WhatsApp that a message has arrived as soon as it is decrypted. So a message is stored while it is being
 * decrypted, and the keys that were used for it are kept after it is: whoever is killed in between gets it again, and can
 * still read it.
 */
export function storingFirst(
  library: Baileys,
  options: {
    take(cipher: Uint8Array, plain: Uint8Array): Promise<void>
    fail(error: unknown): void
    isOver(): boolean
  },
): SocketConfig['makeSignalRepository'] {
  // What the host does with a message must not become part of the transaction.
  const outside = AsyncLocalStorage.snapshot()
  return (auth, logger, findLids) => {
    const repository = library.DEFAULT_CONNECTION_CONFIG.makeSignalRepository(auth, logger, findLids)
    // The library gives it keys that can do transactions, whatever its type says.
    const keys = auth.keys as SignalKeyStoreWithTransaction
    const decrypt = (key: string, cipher: Uint8Array, work: () => Promise<Uint8Array>) =>
      quietly(() =>
        keys.transaction(async () => {
          const plain = await work()
          try {
            await outside(() => options.take(cipher, plain))
          } catch (error) {
            options.fail(error)
          }
          if (options.isOver()) await never
          return plain
        }, key),
      )
    return {
      ...repository,
      decryptMessage: given => decrypt(given.jid, given.ciphertext, () => repository.decryptMessage(given)),
      decryptGroupMessage: given =>
        decrypt(given.group, given.msg, () => repository.decryptGroupMessage(given)),
      encryptMessage: given => quietly(() => repository.encryptMessage(given)),
      injectE2ESession: given => quietly(() => repository.injectE2ESession(given)),
    }
  }
}
