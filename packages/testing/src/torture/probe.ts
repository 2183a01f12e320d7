import { setTimeout as sleep } from 'node:timers/promises'
import { messagesAnswer } from '../../../host/src/api/answers.ts'
import { createRandom } from '../random.ts'
import type { Scene } from './parts.ts'
import type { Kind } from './request-log.ts'

const patienceMs = 90_000

/** Whether an agent's request is answered, as it was before. Undefined: it is. */
export async function answersRequests(
  { traffic }: Scene,
  kind: Kind = 'message',
): Promise<string | undefined> {
  const deadline = performance.now() + patienceMs
  const asked = traffic.ask(kind, createRandom(1))
  if (!asked) return 'nothing could be asked'
  while (asked.answer === undefined) {
    if (performance.now() > deadline) return `no request was answered for ${patienceMs / 1000} s`
    await sleep(50)
    traffic.collect()
  }
  return asked.answer.ok ? undefined : `a request was refused with ${asked.answer.code}`
}

/**
 * Whether a person's message is answered by an agent. Undefined: it is. A message that reaches a session which is just
 * failing is answered with the reason; then the person asks again.
 */
export async function answersPeople(
  { traffic, testbed }: Scene,
  folder: 'ann' | 'bob',
): Promise<string | undefined> {
  const deadline = performance.now() + patienceMs
  const look = async () => {
    const messages = (await testbed.get(`/messages?limit=10000&group=${folder}`, messagesAnswer)) ?? []
    const reasons = messages.filter(({ text }) => text.startsWith('I could not answer that.')).length
    return { messages, reasons }
  }
  let { reasons: toldBefore } = await look()
  let word = traffic.say(folder)
  for (;;) {
    const { messages, reasons } = await look()
    if (messages.some(({ text }) => text.includes(word) && !text.startsWith('own '))) return undefined
    if (reasons > toldBefore) {
      toldBefore = reasons
      word = traffic.say(folder)
    }
    if (performance.now() > deadline) {
      const last = messages.at(-1)?.text.slice(0, 300)
      return `a message to ${folder} was not answered for ${patienceMs / 1000} s; the last word there is: ${last}`
    }
    await traffic.goOn()
    await sleep(200)
  }
}
