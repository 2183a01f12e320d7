import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { usageError } from './failure.ts'

/** Asks a person at the terminal. Questions go to standard error, because they are not part of the output. */
export interface Questions {
  /** asks again until `problem` is undefined; an empty answer means the default */
  ask(question: string, usual: string, problem?: (answer: string) => string | undefined): Promise<string>
  choose(question: string, choices: readonly string[], usual: string): Promise<string>
  /** the answer is not shown */
  secret(question: string): Promise<string>
}

const nowhere = () => new Writable({ write: (_part, _encoding, done) => done() })

/** Ctrl-C and Ctrl-D end the questions, with `whenEnded` as the reason. */
export async function withQuestions<T>(
  work: (questions: Questions) => Promise<T>,
  { hidden = false, whenEnded }: { hidden?: boolean; whenEnded: string },
): Promise<T> {
  const lines = createInterface({
    input: process.stdin,
    output: hidden ? nowhere() : process.stderr,
    terminal: hidden || process.stderr.isTTY,
    ...(hidden && { historySize: 0 }),
  })
  const ended = new AbortController()
  lines.once('SIGINT', () => ended.abort())
  lines.once('close', () => ended.abort())
  const { signal } = ended

  const ask: Questions['ask'] = async (question, usual, problem = () => undefined) => {
    for (;;) {
      const answer = (await lines.question(`${question} [${usual}] `, { signal })).trim() || usual
      const wrong = problem(answer)
      if (wrong === undefined) return answer
      process.stderr.write(`${wrong}\n`)
    }
  }
  const choose: Questions['choose'] = (question, choices, usual) =>
    ask(`${question} (${choices.join(', ')})`, usual, answer =>
      choices.includes(answer) ? undefined : `Choose one of ${choices.join(', ')}.`,
    )
  const secret = async (question: string) => {
    process.stderr.write(question)
    try {
      return await lines.question('', { signal })
    } finally {
      process.stderr.write('\n')
    }
  }
  try {
    return await work({ ask, choose, secret })
  } catch (error) {
    throw signal.aborted ? usageError(whenEnded) : error
  } finally {
    lines.close()
  }
}
