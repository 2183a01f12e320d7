import { appendFileSync } from 'node:fs'
import { threadId, workerData } from 'node:worker_threads'
import { answerQuestions } from '../thread-side.ts'

/** A thread that does what it is told, for thread.test.ts. */
if (workerData === 'broken') throw new Error('cannot begin')
answerQuestions<string, string | number>(
  async question => {
    if (question === 'busy') for (;;);
    if (question === 'throw') throw new Error('thrown')
    if (question === 'exit') process.exit(0)
    if (question === 'environment') return Object.keys(process.env).length
    if (question === 'memory') for (const kept: object[] = []; ; ) kept.push(new Array(1_000_000).fill(1.5))
    return threadId
  },
  () => appendFileSync(String(workerData), 'ended'),
)
