import { z } from 'zod'
import { commandTool } from '../command-tool.ts'

const inMinutes = (ms: number): string => {
  const minutes = Math.max(1, Math.round(ms / 60_000))
  return minutes === 1 ? 'a minute' : `${minutes} minutes`
}

const answers = z.array(
  z.object({
    question: z.string(),
    answer: z.string(),
    option: z.int().optional().describe('which of the options it is, counted from 1'),
    by: z.string().describe('who answered'),
  }),
)

/** People are asked by the host; what they answer comes back while the call waits. */
export const askUser = (timeoutMs: number) =>
  commandTool({
    name: 'ask_user',
    command: 'ask_user',
    title: 'Ask the people in the chat',
    description:
      'Asks the people in this group’s chat one to four questions at once, and waits for their answers, for up to ' +
      `${inMinutes(timeoutMs)}. Give options where you can: they are answered with a click. People may always answer ` +
      'in their own words instead. Ask when you cannot go on without a decision that is theirs.',
    input: z.strictObject({
      questions: z
        .array(
          z.strictObject({
            question: z.string().min(1).max(4000).describe('The whole question, as they will read it.'),
            options: z
              .array(
                z.strictObject({
                  label: z.string().min(1).max(256).describe('What is on the button.'),
                  description: z.string().max(2000).optional().describe('What choosing it means.'),
                }),
              )
              .max(20)
              .optional(),
          }),
        )
        .min(1)
        .max(4),
    }),
    output: z.object({ request_id: z.string(), answers }),
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: true },
    payload: ({ questions }) => ({ questions }),
    hostMs: timeoutMs,
    result: z.object({
      answers: z.array(answers.element.extend({ option: z.int().nullish(), by: z.string() })),
    }),
    render: ({ answers }, { id }) => ({
      facts: {
        request_id: id,
        answers: answers.map(({ option, ...answer }) => ({ ...answer, option: option ?? undefined })),
      },
      sentence: answers
        .map(({ question, answer, by }) => `To “${question}” the answer is “${answer}” (from ${by}).`)
        .join('\n'),
    }),
  })
