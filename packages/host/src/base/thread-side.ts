import { parentPort } from 'node:worker_threads'
import type { FromThread, ToThread } from './thread.ts'

/**
 * What a thread behind `createThread` runs. What `answer` throws ends the thread, and whoever asked gets it as the cause
 * of the failure.
 */
export function answerQuestions<Question, Answer>(
  answer: (question: Question) => Answer | Promise<Answer>,
  end = () => {},
): void {
  const say = (message: FromThread<Answer>) => parentPort?.postMessage(message)
  parentPort?.on('message', async (message: ToThread<Question>) => {
    if (message !== 'end') return say({ answer: await answer(message.question) })
    end()
    parentPort?.close()
  })
  // Whoever waits counts from here on, and not while the thread is being started.
  say('ready')
}
