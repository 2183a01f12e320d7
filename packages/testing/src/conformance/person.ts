import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { approvalsAnswer, entriesAnswer } from '../../../host/src/api/chat-answers.ts'
import type { Testbed } from './testbed.ts'

/** Somebody who sits at the host: answers what they are asked, and lets agents do everything but use the network. */
export function createPerson(testbed: Testbed) {
  let isThere = true
  const answer = async () => {
    const { entries } = await testbed.request(
      'GET',
      '/api/chats/local%3Amain/messages',
      undefined,
      entriesAnswer,
    )
    const open = entries.map(({ question }) => question).find(question => question?.status === 'open')
    if (open) await testbed.say('main', open.answers[0] == null ? 'Blue' : 'yesterday')
  }
  const decide = async () => {
    const waiting = await testbed.request('GET', '/approvals', undefined, approvalsAnswer)
    for (const { id, action } of waiting) {
      const decision = action.name === 'shell' ? 'deny' : 'allow'
      await testbed.request('POST', `/approvals/${id}`, { decision, words: 'not from here' }, z.unknown())
    }
  }
  const working = (async () => {
    while (isThere) {
      await answer()
      await decide()
      await sleep(500)
    }
  })()
  // Whatever they run into is told when they leave.
  working.catch(() => {})
  return {
    async leave() {
      isThere = false
      await working
    },
  }
}
