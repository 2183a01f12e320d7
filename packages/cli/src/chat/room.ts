import { createReadStream } from 'node:fs'
import { basename } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ChatAnswer, ChatEventAnswer, Client, EntryAnswer, FileAnswer } from '@hatchway/host/api'
import { uuid7 } from '@hatchway/protocol/uuid'
import { Failure } from '../failure.ts'
import { type Api, url } from '../session.ts'
import { isFile } from './files.ts'

const reconnectMs = 100

/** One chat of the running daemon. */
export class Room {
  readonly client: Client
  readonly api: Api
  readonly chat: ChatAnswer

  constructor(client: Client, api: Api, chat: ChatAnswer) {
    this.client = client
    this.api = api
    this.chat = chat
  }

  /** The newest entries, oldest first. */
  async entries(limit: number): Promise<readonly EntryAnswer[]> {
    const path = url`/api/chats/${this.chat.jid}/messages?${{ limit }}`
    return (await this.client.get(path, this.api.entriesAnswer)).entries
  }

  say(text: string, attachments: readonly string[] = []) {
    const files = attachments.length > 0 ? { attachments } : {}
    const path = url`/api/chats/${this.chat.jid}/messages`
    return this.client.post(path, { text, id: uuid7(), ...files }, this.api.newEntryAnswer)
  }

  async upload(path: string): Promise<FileAnswer> {
    if (!isFile(path)) throw new Failure(`${path} is not a file.`)
    const address = url`/api/chats/${this.chat.jid}/files?${{ name: basename(path) }}`
    return this.client.upload(address, createReadStream(path), this.api.fileAnswer)
  }

  /**
   * Events of all chats, until the daemon ends. The daemon disconnects a reader that is far behind. We connect again, get
   * another `hello`, and then have to read what we missed.
   */
  async follow(
    onEvent: (event: ChatEventAnswer) => void | Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    await this.client.chatEvents('/api/events', onEvent, signal)
    while (this.client.daemon && !signal.aborted) {
      await sleep(reconnectMs)
      try {
        await this.client.chatEvents('/api/events', onEvent, signal)
      } catch (error) {
        if (error instanceof this.api.DaemonGone) return
        throw error
      }
    }
  }
}
