import type { GatewayDispatchPayload, GatewayGuildCreateDispatchData } from '@discordjs/core'
import type { Logger } from 'pino'
import { createWorkQueue } from '../../../base/keyed-queue.ts'
import { pause } from '../../../base/pause.ts'
import { backoff } from '../../../base/retry.ts'
import { isStorageFailure } from '../../../base/storage-failure.ts'
import type { Core } from './api.ts'
import { createHearing, type HearingOptions } from './hearing.ts'
import { jidOf } from './places.ts'
import { answerPress } from './presses.ts'
import { codes, DiscordLimit, DiscordRefusal, DiscordUnreachable, isRefusal } from './refusals.ts'
import type { Ourselves } from './said.ts'

/**
 * Takes what the gateway tells. What happens in one channel is taken in its order, channels side by side. It stays in the
 * queue until it is stored, also while the connection is made anew; what a killed process had in it is found by the
 * cursors: a new session asks each channel for what came after its cursor, before anything else of that channel is taken.
 */
export interface Events {
  take(event: GatewayDispatchPayload): void
  stop(): Promise<void>
}

export interface EventsOptions extends HearingOptions {
  ourselves: Ourselves & { roles: Set<string> }
  types: Core['GatewayDispatchEvents']
  /** something went wrong, and is tried again */
  failed(error: unknown): void
  log: Logger
}

const pageSize = 100
const pauseAfter = backoff({ firstMs: 500, longestMs: 60_000 })
/** of something that fails for no reason that could pass */
const mostAttempts = 5

export function createEvents(options: EventsOptions): Events {
  const { host, discord, places, cursors, ourselves, types, log } = options
  const stopping = new AbortController()
  const { signal } = stopping
  const hearing = createHearing(options)
  const queue = createWorkQueue()

  const untilTaken = async (channel: string, work: () => Promise<void>) => {
    for (let failures = 1; !signal.aborted; failures++) {
      try {
        return await work()
      } catch (error) {
        // A channel that was taken from us: whatever was said there is not for us.
        if (error instanceof DiscordRefusal && error.isFinal) {
          log.info({ channel, reason: error.message }, 'a channel of Discord cannot be read')
          return
        }
        if (failures >= mostAttempts && !mayPass(error)) {
          log.error({ err: error, channel }, 'something said on Discord could not be taken; it is left out')
          return
        }
        options.failed(error)
        await pause(error instanceof DiscordLimit ? error.retryAfterMs : pauseAfter(failures), signal)
      }
    }
  }
  const inOrder = (channel: string, work: () => Promise<void>) => {
    queue
      .run(channel, undefined, () => untilTaken(channel, work))
      .catch(error => log.debug({ channel, reason: String(error) }, 'an event is left to the next start'))
  }

  const catchUp = async (channel: string) => {
    for (;;) {
      const after = cursors.of(channel)
      if (after === undefined) return
      const page = await discord.ask((api, given) =>
        api.channels.getMessages(channel, { after, limit: pageSize }, { signal: given }),
      )
      // The newest comes first.
      for (const message of page.toReversed()) await hearing.hear(message)
      if (page.length < pageSize) return
    }
  }
  const catchUpLater = (channel: string, isLast: boolean) =>
    inOrder(channel, async () => {
      try {
        await catchUp(channel)
      } catch (error) {
        if (!isRefusal(error, codes.unknownChannel)) throw error
        isLast = true
      }
      if (isLast) cursors.forget(channel)
    })

  const arrive = (guild: GatewayGuildCreateDispatchData) => {
    if (guild.unavailable) return
    places.learnGuild(guild)
    for (const { id, tags } of guild.roles) if (tags?.bot_id === ourselves.user) ourselves.roles.add(id)
    // A thread that is new to us was begun while nobody was there; its channel's cursor says since when.
    for (const { id, parent_id } of guild.threads) {
      const since = cursors.of(id) ?? (parent_id ? cursors.of(parent_id) : undefined)
      if (since !== undefined) cursors.advance(id, guild.id, since)
    }
    const present = new Set([...guild.channels, ...guild.threads].map(({ id }) => id))
    const read = new Set(cursors.in(guild.id))
    // One that is not here is a thread that was archived: it is here again when somebody writes in it.
    for (const channel of read) catchUpLater(channel, !present.has(channel))
    for (const chat of places.chats()) if (read.has(chat.jid.slice(jidOf('').length))) host.knows(chat)
  }

  const take = (event: GatewayDispatchPayload) => {
    switch (event.t) {
      case types.Ready:
        ourselves.user = event.d.user.id
        ourselves.application = event.d.application.id
        for (const channel of cursors.in(undefined)) catchUpLater(channel, false)
        return
      case types.GuildCreate:
        return arrive(event.d)
      case types.MessageCreate:
        return inOrder(event.d.channel_id, () => hearing.hear(event.d))
      case types.MessageUpdate:
        return inOrder(event.d.channel_id, () => hearing.change(event.d))
      case types.MessageDelete:
        return inOrder(event.d.channel_id, () => hearing.remove(event.d.channel_id, event.d.id))
      case types.MessageDeleteBulk:
        for (const id of event.d.ids)
          inOrder(event.d.channel_id, () => hearing.remove(event.d.channel_id, id))
        return
      case types.MessageReactionAdd:
        return inOrder(event.d.channel_id, () => hearing.react(event.d))
      case types.InteractionCreate:
        // Not in the queue: Discord waits for three seconds.
        return void answerPress(event.d, options)
      case types.ChannelCreate:
      case types.ChannelUpdate:
      case types.ThreadCreate:
      case types.ThreadUpdate:
        return learn(event.d)
      case types.ThreadListSync:
        for (const thread of event.d.threads) places.learn(thread, event.d.guild_id)
        return
      case types.ChannelDelete:
      case types.ThreadDelete:
        return places.forget(event.d.id)
    }
  }
  const learn = (channel: Parameters<typeof places.learn>[0]) => {
    places.learn(channel)
    const chat = places.chats().find(({ jid }) => jid === jidOf(channel.id))
    if (chat && cursors.of(channel.id) !== undefined) host.knows(chat)
  }

  return {
    take(event) {
      try {
        take(event)
      } catch (error) {
        // The library would let it end the process.
        log.error({ err: error, event: event.t }, 'what Discord told could not be understood')
      }
    },
    stop() {
      stopping.abort()
      return queue.stop(new Error('The channel is disconnected.'))
    },
  }
}

const mayPass = (error: unknown) =>
  isStorageFailure(error) ||
  error instanceof DiscordLimit ||
  error instanceof DiscordUnreachable ||
  error instanceof DiscordRefusal
