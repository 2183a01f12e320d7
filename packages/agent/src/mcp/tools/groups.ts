import { dialectNameSchema, type Group, groupSchema } from '@hatchway/protocol'
import { z } from 'zod'
import { commandTool } from '../command-tool.ts'
import { readSnapshot } from '../snapshot.ts'
import { defineTool } from '../tool.ts'

const changes = { readOnlyHint: false, idempotentHint: true, openWorldHint: false } as const
const chat = z.string().describe('The chat’s id as its channel names it, such as local:family.')

const registerGroup = commandTool({
  name: 'register_group',
  command: 'register_group',
  title: 'Register a group',
  description:
    'Gives a chat an agent and a folder of its own. A chat or folder that has a group already is not taken over.',
  input: z.strictObject({
    jid: chat,
    name: z.string().describe('What people call the group.'),
    folder: z
      .string()
      .describe('Its directory: 1 to 64 letters, digits, "-" or "_", starting with a letter or digit.'),
    trigger: z.string().describe('The word that calls the agent, such as @Hatch.'),
    requiresTrigger: z
      .boolean()
      .optional()
      .describe('Whether the agent answers only when called by the trigger. Left out: true.'),
  }),
  output: z.object({ request_id: z.string(), folder: z.string(), jid: z.string() }),
  annotations: { ...changes, destructiveHint: false },
  payload: ({ requiresTrigger, ...group }) => ({ ...group, requires_trigger: requiresTrigger }),
  names: { requires_trigger: 'requiresTrigger' },
  result: z.object({ folder: z.string(), jid: z.string() }),
  render: ({ folder, jid }, { id }) => ({
    facts: { request_id: id, folder, jid },
    sentence: `The chat ${jid} is registered as the group ${folder}.`,
  }),
})

const unregisterGroup = commandTool({
  name: 'unregister_group',
  command: 'unregister_group',
  title: 'Unregister a group',
  description: 'Ends a group: its agent no longer answers and its tasks are cancelled. Its files are kept.',
  input: z.strictObject({ jid: chat }),
  output: z.object({
    request_id: z.string(),
    folder: z.string(),
    jid: z.string(),
    tasks_cancelled: z.number(),
  }),
  annotations: { ...changes, destructiveHint: true },
  payload: ({ jid }) => ({ jid }),
  result: z.object({ folder: z.string(), jid: z.string(), tasks_cancelled: z.number() }),
  render: ({ folder, jid, tasks_cancelled }, { id }) => ({
    facts: { request_id: id, folder, jid, tasks_cancelled },
    sentence: `The group ${folder} of the chat ${jid} is unregistered; tasks cancelled with it: ${tasks_cancelled}.`,
  }),
})

const refreshGroups = commandTool({
  name: 'refresh_groups',
  command: 'refresh_groups',
  title: 'Refresh the list of groups',
  description: 'Has the host write the list that list_groups shows anew.',
  input: z.strictObject({}),
  output: z.object({ request_id: z.string(), groups: z.number() }),
  annotations: { ...changes, destructiveHint: false },
  payload: () => ({}),
  result: z.object({ groups: z.number() }),
  render: ({ groups }, { id }) => ({
    facts: { request_id: id, groups },
    sentence: `The list is written anew; groups in it: ${groups}.`,
  }),
})

const groupList = z.object({ groups: z.array(groupSchema), synced_at: z.iso.datetime() })

/** Plainer than the snapshot's own schema, which was checked: the patterns of names are of no use to a model. */
const listedGroup = z.object({
  folder: z.string(),
  jid: z.string().describe('its chat'),
  name: z.string(),
  main: z.boolean(),
  dialect: dialectNameSchema,
  trigger: z.string().optional(),
  requires_trigger: z.boolean(),
  channel: z.string().optional(),
  added_at: z.string(),
  last_activity: z.string().optional(),
})

const listed = (group: Group): z.infer<typeof listedGroup> => ({
  ...group,
  trigger: group.trigger ?? undefined,
  channel: group.channel ?? undefined,
  last_activity: group.last_activity ?? undefined,
})

const listGroups = defineTool({
  name: 'list_groups',
  title: 'List groups',
  description:
    'Every registered group with its chat, folder, trigger and last activity, and when the list was made.',
  input: z.strictObject({}),
  output: z.object({ groups: z.array(listedGroup), synced_at: z.string() }),
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  call(_, { surroundings: { ipc } }) {
    const snapshot = readSnapshot(ipc, 'available_groups.json', groupList)
    if ('problem' in snapshot) {
      return {
        failure: {
          code: 'no_snapshot',
          message: `It is unknown which groups there are: ${snapshot.problem}.`,
        },
      }
    }
    const groups = snapshot.value.groups.map(listed)
    return {
      facts: { groups, synced_at: snapshot.value.synced_at },
      sentence: groups.length === 1 ? 'There is 1 group.' : `There are ${groups.length} groups.`,
    }
  },
})

export const groupTools = [registerGroup, unregisterGroup, listGroups, refreshGroups]
