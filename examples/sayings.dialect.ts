import { commandSchema, type Dialect, dialects, refusal } from '@hatchway/protocol'

/** Containers that write `{"say": "…"}` into messages/ and read their tasks as lists; all else is version 1. */
export const sayings: Dialect = {
  ...dialects.hatchway,
  recognise({ directory, body }) {
    // Only what is unmistakably ours: every file of every group is shown to every dialect.
    if (!Object.hasOwn(body, 'say') || directory !== 'messages') return undefined
    const read = commandSchema.safeParse({ type: 'send_message', payload: { text: body.say } })
    const command = read.success
      ? read.data
      : refusal('invalid_field', 'say: must be a text of 1 to 1,000,000 characters')
    return { dialect: sayings.name, type: 'say', command }
  },
  tasks: (tasks, viewer) => ({
    path: 'current_tasks.json',
    content: JSON.stringify(
      tasks
        .filter(({ group, status }) => status !== 'cancelled' && (viewer.main || group === viewer.folder))
        .map(({ id, prompt, next_run }) => [id, next_run, prompt]),
    ),
  }),
}
