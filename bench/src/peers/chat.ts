import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startChild } from '../children.ts'
import type { Absent, Contender } from '../contenders.ts'
import {
  type AgentSettings,
  type Hatchway,
  type HatchwayOptions,
  refuseRefusals,
  registerWithHatchway,
  startHatchway,
} from '../hatchway.ts'
import { pause } from '../post.ts'
import { asFields, asNumber, asText } from '../shape.ts'

export interface OpenedChat {
  hatchway: Hatchway
  /** µs from just before it is sent until the answer is read */
  ask(text: string): Promise<number>
  /** resolves when no session runs */
  alone(): Promise<void>
  end(): Promise<void>
}

/** A task that is far enough away never to be due, scheduled by the agent with a tool, through the hatch. */
const request = 'remind me in 300 days to stretch'
const promise = /^I’ll remind you /

/** A daemon that runs agents, and a person who talks to one; or why there is no agent. */
export const openChatWith = async (
  base: string,
  name: string,
  agents: AgentSettings,
): Promise<Absent | OpenedChat> => {
  const options: HatchwayOptions = {
    data: join(base, name.replaceAll(' ', '-')),
    durability: 'full',
    groups: 1,
    dialect: 'hatchway',
    quotas: 'default',
    record: 'count',
    agents,
  }
  await registerWithHatchway(options)
  const hatchway = await startHatchway(options)
  await hatchway.ready()
  const missing = await hatchway.agentsReady()
  if (missing !== undefined) {
    await hatchway.stop()
    return { name, missing }
  }
  const person = startChild(new URL('./chat.process.ts', import.meta.url), `${name}: person`)
  await person.call('begin', options.data)
  return {
    hatchway,
    async ask(text) {
      const answer = asFields(await person.call('ask', text))
      // an apology may be quicker than the real thing
      if (text === request && !promise.test(asText(answer.text))) throw new Error(asText(answer.text))
      return asNumber(answer.took)
    },
    async alone() {
      while ((await hatchway.sessions()) > 0) await sleep(20)
    },
    async end() {
      await person.call('end')
      await person.end()
      await hatchway.stop()
      refuseRefusals(options.data)
    },
  }
}

/** a warm session answers so quickly that a figure may rest on more of them */
const warmSamples = 5
/** longer than the daemon gathers messages before it delivers them: asked at once, one would fall into step with that */
const personGap = 80

/** Chat message → reply, each into a session of its own or all into one that runs. */
export const chatContender = async (
  base: string,
  name: string,
  session: 'cold' | 'warm',
  sandbox: AgentSettings['sandbox'],
): Promise<Contender | Absent> => {
  const opened = await openChatWith(base, name, { sandbox, idleMs: session === 'cold' ? 0 : 3_600_000 })
  if ('missing' in opened) return opened
  return {
    name,
    async block(count) {
      const samples: number[] = []
      if (session === 'warm') {
        // Begins the session, or wakes it, and clears away what the last round has left.
        await opened.ask('cancel all reminders')
        while (samples.length < count * warmSamples) {
          await pause(personGap)
          samples.push(await opened.ask(request))
        }
        return samples
      }
      while (samples.length < count) {
        samples.push(await opened.ask(request))
        await opened.alone()
      }
      return samples
    },
    end: opened.end,
  }
}
