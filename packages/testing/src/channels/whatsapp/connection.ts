import type { BinaryNode } from '../../../../host/src/plugins/channels/whatsapp/library.ts'

/** A device that has connected, as the server sees it. */
export interface Connection {
  send(node: BinaryNode): void
  end(): void
  identity: Uint8Array
  noiseKey: Uint8Array
}
