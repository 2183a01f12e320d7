import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { DialectName } from '@hatchway/protocol'
import { createNames } from '@hatchway/spool'

/**
 * The containers, as far as the host can see them: the files they write, under the names and in the way they write
 * them. A writer lists what it can say at all; what a dialect has no word for is not here.
 */
export interface Writer {
  name: string
  dialect: DialectName
  fileName(intent: Intent): string
  /** as the container leaves it lying around while it is half-written; undefined: it writes in place */
  temporaryName(name: string, intent: Intent): string | undefined
  /** what it can say about its own group only */
  untargeted?: readonly Op[]
  says: Readonly<Partial<Record<Op, (intent: Intent, claims: Claims) => Said>>>
}

/** What an agent wants, before its container puts it into words. */
export interface Intent {
  op: Op
  /** a word found nowhere else: the text, the prompt, the name, the request id */
  mark: string
  /** the agent's own group: where a container must name a chat, it names this one unless told otherwise */
  own: { folder: string; jid: string }
  /** left out: the own chat */
  jid?: string
  /** the folder of the group that `jid` belongs to, for those who name a group by it */
  folder?: string
  /** the task that is meant, or the id that a new one is to have */
  taskId?: string
  /** left out: the mark */
  requestId?: string
  /** of a new task, hourly if left out; of one that is changed */
  schedule?: { schedule_type: string; schedule_value: string }
  status?: string
}

export type Op =
  | 'send_message'
  | 'reply'
  | 'speak'
  | 'react'
  | 'schedule_task'
  | 'update_task'
  | 'pause_task'
  | 'resume_task'
  | 'cancel_task'
  | 'register_group'
  | 'unregister_group'
  | 'refresh_groups'
  | 'schedule_host_job'
  | 'create_periodic_agent'
  | 'deploy'
  | 'reset_context'
  | 'finished_work'
  | 'sync_worktree'
  | 'call_service'
  | 'ask_user'
  | 'check_shell'

/** A flat file: its type, and its fields beside it. */
type Body = { type: string; [field: string]: unknown }

/** What the file says about its sender, true or not. */
interface Claims {
  folder: string
  jid: string
  isMain: boolean
  /** says it wherever there is room for it, also where the container would not */
  everywhere: boolean
}

export interface Said {
  directory: string
  text: string
  /** the type as the file names it */
  type: string
  reply?: { path: string; shape: 'receipt' | 'result' | 'decision' | 'success' }
}

/** Puts the file there as this container does. */
export function write(writer: Writer, inbox: string, said: Said, name: string, intent: Intent): void {
  const directory = join(inbox, said.directory)
  const temporary = writer.temporaryName(name, intent)
  writeFileSync(join(directory, temporary ?? name), said.text)
  if (temporary !== undefined) renameSync(join(directory, temporary), join(directory, name))
}

const timestamp = () => new Date().toISOString()
const indented = (value: object) => JSON.stringify(value, null, 2)

let counter = 0
const digits = (radix: number, length: number) => (++counter).toString(radix).padStart(length, '0')

const everyClaim = ({ folder, isMain, everywhere }: Claims, asText = false) =>
  everywhere
    ? {
        groupFolder: folder,
        isMain: asText ? String(isMain) : isMain,
        isAdmin: isMain,
        isGod: isMain,
        createdBy: folder,
      }
    : {}

const inMessages = (body: Body, claims: Claims): Said => ({
  directory: 'messages',
  type: body.type,
  text: indented({ ...body, groupFolder: claims.folder, timestamp: timestamp(), ...everyClaim(claims) }),
})
const inTasks = (body: Body, claims: Claims): Said => ({
  directory: 'tasks',
  type: body.type,
  text: indented({ ...body, ...everyClaim(claims) }),
})
const aboutTask = (type: string) => (intent: Intent, claims: Claims) =>
  inTasks(
    {
      type,
      taskId: intent.taskId,
      groupFolder: claims.folder,
      isMain: claims.isMain,
      timestamp: timestamp(),
    },
    claims,
  )

const hourly = { schedule_type: 'interval', schedule_value: '3600000' }
const idOf = ({ requestId, mark }: Intent) => requestId ?? mark
const changesOf = ({ mark, schedule, status }: Intent) => ({
  prompt: mark,
  ...schedule,
  ...(status === undefined ? {} : { status }),
})
const inTmp = (name: string) => `${name}.tmp`
const shellRefresh = ({ op }: Intent) => op === 'refresh_groups'

const nanoclawMessage = (intent: Intent, claims: Claims) =>
  inMessages({ type: 'message', chatJid: intent.jid ?? intent.own.jid, text: intent.mark }, claims)

const nanoclawRegister = (intent: Intent, claims: Claims) =>
  inTasks(
    {
      type: 'register_group',
      jid: intent.jid,
      name: intent.mark,
      folder: intent.folder,
      trigger: '@Andy',
      timestamp: timestamp(),
    },
    claims,
  )

/** A shell in the agent: `echo '{"type":"refresh_groups"}' > tasks/refresh_{secs}.json`. */
const shellSays = (_: Intent, claims: Claims): Said => ({
  directory: 'tasks',
  type: 'refresh_groups',
  text: `${JSON.stringify({ type: 'refresh_groups', ...everyClaim(claims) })}\n`,
})
const shellName = () => `refresh_${1_769_900_000 + ++counter}.json`

export const nanoclaw: Writer = {
  name: 'nanoclaw',
  dialect: 'nanoclaw',
  fileName: intent => (shellRefresh(intent) ? shellName() : `${Date.now()}-${digits(36, 6)}.json`),
  temporaryName: (name, intent) => (shellRefresh(intent) ? undefined : inTmp(name)),
  says: {
    send_message: nanoclawMessage,
    react: (intent, claims) =>
      inMessages(
        { type: 'reaction', chatJid: intent.jid ?? intent.own.jid, emoji: '👍', messageId: intent.mark },
        claims,
      ),
    schedule_task: (intent, claims) =>
      inTasks(
        {
          type: 'schedule_task',
          taskId: intent.taskId ?? `task-${intent.mark}`,
          prompt: intent.mark,
          ...(intent.schedule ?? hourly),
          context_mode: 'group',
          targetJid: intent.jid ?? intent.own.jid,
          createdBy: claims.folder,
          timestamp: timestamp(),
        },
        claims,
      ),
    update_task: (intent, claims) => ({
      directory: 'tasks',
      type: 'update_task',
      text: indented({
        type: 'update_task',
        taskId: intent.taskId,
        ...changesOf(intent),
        groupFolder: claims.folder,
        isMain: String(claims.isMain),
        timestamp: timestamp(),
        ...everyClaim(claims, true),
      }),
    }),
    pause_task: aboutTask('pause_task'),
    resume_task: aboutTask('resume_task'),
    cancel_task: aboutTask('cancel_task'),
    register_group: nanoclawRegister,
    refresh_groups: shellSays,
    call_service: (intent, claims) => ({
      directory: 'tasks',
      type: 'x_post',
      text: indented({
        type: 'x_post',
        requestId: idOf(intent),
        content: 'Hello, world',
        groupFolder: claims.folder,
        timestamp: timestamp(),
        ...everyClaim(claims),
      }),
      reply: { path: `x_results/${idOf(intent)}.json`, shape: 'success' },
    }),
  },
}

/** The fork of seed 003: no targets, and tasks by number. */
const forkTask = (type: string) => (intent: Intent, claims: Claims) =>
  inTasks({ type, task_id: Number(intent.taskId) }, claims)

const fork: Writer = {
  ...nanoclaw,
  name: 'fork',
  untargeted: ['schedule_task'],
  says: {
    send_message: nanoclawMessage,
    schedule_task: (intent, claims) =>
      inTasks(
        {
          type: 'schedule_task',
          prompt: intent.mark,
          ...(intent.schedule ?? hourly),
          context_mode: 'isolated',
          model: 'small',
        },
        claims,
      ),
    update_task: (intent, claims) =>
      inTasks({ type: 'update_task', task_id: Number(intent.taskId), ...changesOf(intent) }, claims),
    pause_task: forkTask('pause_task'),
    resume_task: forkTask('resume_task'),
    cancel_task: forkTask('cancel_task'),
    register_group: (intent, claims) =>
      inTasks(
        {
          type: 'register_group',
          jid: intent.jid,
          name: intent.mark,
          folder: intent.folder,
          trigger_pattern: '@assistant',
          requires_trigger: true,
          channel: 'whatsapp',
        },
        claims,
      ),
    refresh_groups: shellSays,
  },
}

/** In a task of NovaBot's, the folder of a group is no claim about the sender: it says whose task it is to be. */
const withoutFolder = (claims: Claims, { own }: Intent): Claims => ({ ...claims, folder: own.folder })

const novabot: Writer = {
  ...nanoclaw,
  name: 'novabot',
  dialect: 'novabot',
  says: {
    send_message: nanoclawMessage,
    reply: (intent, claims) =>
      inMessages(
        {
          type: 'reply',
          text: intent.mark,
          audio_text: null,
          audio_title: null,
          chatJid: intent.jid ?? intent.own.jid,
        },
        claims,
      ),
    speak: (intent, claims) => ({
      directory: 'audio',
      type: 'speak',
      text: indented({
        type: 'speak',
        text: intent.mark,
        title: null,
        ...(intent.jid === undefined ? {} : { chatJid: intent.jid }),
        ...everyClaim(claims),
      }),
    }),
    schedule_task: (intent, claims) =>
      inTasks(
        {
          type: 'schedule_task',
          prompt: intent.mark,
          ...(intent.schedule ?? hourly),
          context_mode: 'isolated',
          ...everyClaim(withoutFolder(claims, intent)),
          groupFolder: intent.folder ?? intent.own.folder,
          chatJid: intent.folder === undefined ? (intent.jid ?? intent.own.jid) : intent.own.jid,
        },
        { ...claims, everywhere: false },
      ),
    pause_task: aboutTask('pause_task'),
    resume_task: aboutTask('resume_task'),
    cancel_task: aboutTask('cancel_task'),
    register_group: nanoclawRegister,
    refresh_groups: shellSays,
  },
}

/** What only NovaBot's document says, written as the document shows it: on one line, under telling names. */
const documented = (directory: string, body: Body, claims: Claims): Said => ({
  directory,
  type: body.type,
  text: JSON.stringify({ ...body, groupFolder: claims.folder, ...everyClaim(claims) }),
})
const documentedWord: Partial<Record<Op, string>> = {
  send_message: 'message',
  schedule_task: 'schedule',
  update_task: 'update',
  cancel_task: 'cancel',
  register_group: 'register',
}

export const novabotDocument: Writer = {
  name: 'novabot-document',
  dialect: 'novabot',
  fileName: ({ op }) => `${documentedWord[op] ?? op}-${digits(16, 12)}.json`,
  temporaryName: inTmp,
  says: {
    send_message: (intent, claims) =>
      documented(
        'messages',
        { type: 'send_message', chatJid: intent.jid ?? intent.own.jid, message: intent.mark },
        claims,
      ),
    schedule_task: (intent, claims) =>
      documented(
        'tasks',
        {
          type: 'schedule_task',
          prompt: intent.mark,
          ...(intent.schedule ?? hourly),
          context_mode: 'isolated',
          chatJid: intent.jid ?? intent.own.jid,
        },
        withoutFolder(claims, intent),
      ),
    update_task: (intent, claims) =>
      documented('tasks', { type: 'update_task', taskId: intent.taskId, updates: changesOf(intent) }, claims),
    pause_task: (intent, claims) =>
      documented('tasks', { type: 'pause_task', taskId: intent.taskId }, claims),
    resume_task: (intent, claims) =>
      documented('tasks', { type: 'resume_task', taskId: intent.taskId }, claims),
    cancel_task: (intent, claims) =>
      documented('tasks', { type: 'cancel_task', taskId: intent.taskId }, claims),
    register_group: (intent, claims) =>
      documented(
        'groups',
        {
          type: 'register_group',
          jid: intent.jid,
          name: intent.mark,
          folder: intent.folder,
          trigger: '@Nova',
        },
        claims,
      ),
    unregister_group: (intent, claims) =>
      documented('groups', { type: 'unregister_group', jid: intent.jid }, claims),
  },
}

const enveloped = (type: string, payload: object, claims: Claims): Said => ({
  directory: 'tasks',
  type,
  text: JSON.stringify({ type, payload, source_group: claims.folder }),
})
const envelopedTask = (type: string) => (intent: Intent, claims: Claims) =>
  enveloped(type, { task_id: intent.taskId }, claims)

export const mdclaw: Writer = {
  name: 'mdclaw',
  dialect: 'mdclaw',
  fileName: () => `${Date.now()}-${digits(16, 8)}.json`,
  temporaryName: name => `.${name}.tmp`,
  says: {
    schedule_task: (intent, claims) =>
      enveloped(
        'schedule_task',
        {
          prompt: intent.mark,
          ...(intent.schedule ?? hourly),
          ...(intent.jid === undefined ? {} : { chat_jid: intent.jid }),
        },
        claims,
      ),
    pause_task: envelopedTask('pause_task'),
    resume_task: envelopedTask('resume_task'),
    cancel_task: envelopedTask('cancel_task'),
    register_group: (intent, claims) =>
      enveloped(
        'register_group',
        { name: intent.mark, folder: intent.folder, chat_jid: intent.jid, trigger: '@Andy' },
        claims,
      ),
    refresh_groups: (_, claims) => enveloped('refresh_groups', {}, claims),
  },
}

const asked = (
  type: string,
  body: object,
  intent: Intent,
  claims: Claims,
  shape: 'result' | 'decision' = 'result',
): Said => ({
  directory: 'tasks',
  type,
  text: indented({ ...body, type, request_id: idOf(intent), ...everyClaim(claims) }),
  reply: { path: `responses/${idOf(intent)}.json`, shape },
})

export const pynchy: Writer = {
  name: 'pynchy',
  dialect: 'pynchy',
  fileName: () => `${Date.now()}-${digits(16, 6)}.json`,
  temporaryName: inTmp,
  says: {
    send_message: (intent, claims) =>
      inMessages(
        { type: 'message', chatJid: intent.jid ?? intent.own.jid, text: intent.mark, sender: null },
        claims,
      ),
    schedule_task: (intent, claims) =>
      inTasks(
        {
          type: 'schedule_task',
          prompt: intent.mark,
          ...(intent.schedule ?? hourly),
          context_mode: 'group',
          targetGroup: intent.folder ?? intent.own.folder,
          createdBy: claims.folder,
          timestamp: timestamp(),
        },
        claims,
      ),
    pause_task: aboutTask('pause_task'),
    resume_task: aboutTask('resume_task'),
    cancel_task: aboutTask('cancel_task'),
    register_group: nanoclawRegister,
    refresh_groups: (_, claims) => ({
      directory: 'tasks',
      type: 'refresh_groups',
      text: indented({ signal: 'refresh_groups', timestamp: timestamp(), ...everyClaim(claims) }),
    }),
    schedule_host_job: (intent, claims) =>
      inTasks(
        {
          type: 'schedule_host_job',
          name: intent.mark,
          command: 'true',
          schedule_type: 'cron',
          schedule_value: '0 3 * * *',
          cwd: null,
          timeout_seconds: 600,
          createdBy: claims.folder,
          timestamp: timestamp(),
        },
        claims,
      ),
    create_periodic_agent: (intent, claims) =>
      inTasks(
        { type: 'create_periodic_agent', name: intent.mark, schedule: '0 9 * * *', prompt: intent.mark },
        claims,
      ),
    deploy: (intent, claims) =>
      inTasks(
        {
          type: 'deploy',
          rebuildContainer: true,
          resumePrompt: intent.mark,
          headSha: 'a1b2c3d4',
          sessionId: '',
          chatJid: claims.jid,
          timestamp: timestamp(),
        },
        claims,
      ),
    reset_context: (intent, claims) =>
      inTasks(
        {
          type: 'reset_context',
          chatJid: claims.jid,
          groupFolder: claims.folder,
          message: intent.mark,
          timestamp: timestamp(),
        },
        claims,
      ),
    finished_work: (_, claims) =>
      inTasks(
        { type: 'finished_work', chatJid: claims.jid, groupFolder: claims.folder, timestamp: timestamp() },
        claims,
      ),
    sync_worktree: (intent, claims) => ({
      directory: 'tasks',
      type: 'sync_worktree_to_main',
      text: indented({
        type: 'sync_worktree_to_main',
        groupFolder: claims.folder,
        requestId: idOf(intent),
        timestamp: timestamp(),
        ...everyClaim(claims),
      }),
      reply: { path: `merge_results/${idOf(intent)}.json`, shape: 'success' },
    }),
    call_service: (intent, claims) => asked('service:list_calendars', { calendar: 'home' }, intent, claims),
    ask_user: (intent, claims) =>
      asked('ask_user:ask', { questions: [{ question: 'Which one?', options: [] }] }, intent, claims),
    check_shell: (intent, claims) =>
      asked(
        'security:bash_check',
        { command: 'ls -l', groupFolder: claims.folder },
        intent,
        claims,
        'decision',
      ),
  },
}

const freshName = createNames()
const versioned =
  (type: string, payload: (intent: Intent) => object, directory = 'tasks') =>
  (intent: Intent, claims: Claims): Said => ({
    directory,
    type,
    text: JSON.stringify({
      version: 1,
      id: idOf(intent),
      type,
      payload: { ...payload(intent), ...everyClaim(claims) },
      sent_at: timestamp(),
      ...everyClaim(claims),
      ...(claims.everywhere ? { source_group: claims.folder } : {}),
    }),
    reply: { path: `responses/${idOf(intent)}.json`, shape: 'receipt' },
  })
const named = ({ jid }: Intent) => (jid === undefined ? {} : { jid })
const theTask = ({ taskId }: Intent) => ({ task_id: taskId })

export const hatchway: Writer = {
  name: 'hatchway',
  dialect: 'hatchway',
  fileName: () => freshName(),
  temporaryName: inTmp,
  says: {
    send_message: versioned('send_message', intent => ({ ...named(intent), text: intent.mark }), 'messages'),
    react: versioned(
      'react',
      intent => ({ ...named(intent), emoji: '👍', message_id: intent.mark }),
      'messages',
    ),
    schedule_task: versioned('schedule_task', intent => ({
      ...(intent.taskId === undefined ? {} : theTask(intent)),
      ...named(intent),
      prompt: intent.mark,
      ...(intent.schedule ?? hourly),
    })),
    update_task: versioned('update_task', intent => ({ ...theTask(intent), ...changesOf(intent) })),
    pause_task: versioned('pause_task', theTask),
    resume_task: versioned('resume_task', theTask),
    cancel_task: versioned('cancel_task', theTask),
    register_group: versioned('register_group', intent => ({
      jid: intent.jid,
      name: intent.mark,
      folder: intent.folder,
    })),
    unregister_group: versioned('unregister_group', named, 'groups'),
    refresh_groups: versioned('refresh_groups', () => ({})),
    schedule_host_job: versioned('schedule_host_job', intent => ({
      name: intent.mark,
      command: 'true',
      ...(intent.schedule ?? hourly),
    })),
    create_periodic_agent: versioned('create_periodic_agent', intent => ({
      name: intent.mark,
      schedule: '0 9 * * *',
      prompt: intent.mark,
    })),
    deploy: versioned('deploy', intent => ({ resume_prompt: intent.mark })),
    reset_context: versioned('reset_context', intent => ({ message: intent.mark })),
    finished_work: versioned('finished_work', () => ({})),
    sync_worktree: versioned('sync_worktree', () => ({})),
    call_service: versioned('call_service', () => ({ tool: 'list_calendars', arguments: {} })),
    ask_user: versioned('ask_user', () => ({ questions: [{ question: 'Which one?' }] })),
    check_shell: versioned('check_shell', () => ({ command: 'true' })),
  },
}

export const writers: readonly Writer[] = [hatchway, nanoclaw, fork, novabot, novabotDocument, mdclaw, pynchy]
