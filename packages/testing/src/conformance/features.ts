/**
 * Everything that containers of the dialects do, and find, in rows: what it is, and from where it is seen. A feature
 * counts when everybody who has to see it has, and nobody has seen it go wrong.
 */
interface Feature {
  title: string
  /** `inside`: the program in the container tests it; `outside`: the command looks at its effect */
  by: 'inside' | 'outside' | 'both'
}

const inside = (title: string): Feature => ({ title, by: 'inside' })
const outside = (title: string): Feature => ({ title, by: 'outside' })
const both = (title: string): Feature => ({ title, by: 'both' })

const start = {
  uid: inside('runs as a user of its own, whom its files belong to'),
  folders: inside('finds its directories, all of them its own to write in'),
  document: inside('is given its document where it looks for it, in its shape'),
  environment: inside('finds its variables in the environment'),
  fresh: inside('finds nothing that an earlier run has left behind'),
  session: inside('is given the session id that it gave last'),
  scheduled: both('a scheduled run: is told so, answers, ends'),
  isolated: inside('a scheduled run with a context of its own is given no session'),
  script: inside('a scheduled run is given its script'),
} as const

const said = {
  answer: outside('what it answers reaches the chat'),
  several: outside('answers several times in one run'),
  plain: outside('prints plain text of several lines'),
  idle: outside('has nothing to say: nothing is said'),
  error: outside('reports an error: the next run is given the message again'),
  stream: outside('streams its work: thoughts, tool calls and results, text, system'),
  ready: inside('says `ready` first, which is taken'),
  outbox: both('answers a message under its id'),
} as const

const told = {
  who: inside('is told who said what and when, in its project’s own form'),
  followup: both('a follow-up while it works: its shape, answered by the same run'),
  inbox: inside('a message in its inbox: its shape'),
  close: both('is asked to finish, in its way, and ends'),
  'close-first': both('sees the wish before the message beside it: the next run answers it, once'),
  'close-last': both('sees the message before the wish beside it: answers it itself, once'),
  'close-before': both('a message after the wish: the next run answers it, once'),
  interrupt: both('a turn that takes too long is interrupted, and it goes on'),
} as const

const files = {
  names: outside('its names, written under its temporary names'),
  'names-document': outside('the names of the document'),
  taken: inside('a handled file is gone'),
  temporary: outside('a temporary file is never read'),
  echo: outside('`echo … > tasks/refresh_N.json` of a shell'),
  halves: outside('a file that is written in two halves'),
  order: outside('what it does keeps its order, whatever the names'),
  unknown: outside('refused: a type that nobody knows'),
  malformed: outside('refused: a file that never becomes JSON'),
  errors: outside('what is refused lies in `errors/` with its reason, and nothing else does'),
} as const

const messages = {
  message: outside('a message to its own chat'),
  sender: outside('a message with a sender'),
  elsewhere: outside('a message to another chat, from the main group'),
  'elsewhere-refused': outside('refused: a message to another chat, from another group'),
  claims: outside('refused: the same with claims to be the main group'),
  'send-message': outside('a message as `send_message`'),
  reply: outside('a reply'),
  'reply-audio': outside('a reply with something to say aloud'),
  speak: outside('something to say aloud, in `audio/`'),
  reaction: outside('a reaction to a message'),
  'reaction-last': outside('a reaction to the last message'),
} as const

const tasks = {
  cron: outside('schedules with a cron expression'),
  interval: outside('schedules at an interval in milliseconds'),
  once: outside('schedules for an instant'),
  'once-local': outside('schedules for a local time, in the configured zone'),
  'own-chat': outside('names no target: its own chat'),
  'other-chat': outside('schedules for another group, from the main group'),
  'other-chat-refused': outside('refused: schedules for another group, from another group'),
  'task-id': outside('chooses the id itself'),
  'task-script': inside('gives a script'),
  'task-model': both('names a model, and finds it in the list'),
  context: outside('asks for a context mode'),
  'context-default': outside('names no context mode: its project’s own default'),
  'context-bad': outside('names a bad context mode: a fresh session'),
  'bad-schedule': outside('refused: a schedule that cannot be run'),
  pause: both('pauses'),
  resume: both('resumes'),
  update: both('changes the prompt and the schedule'),
  'update-script': outside('clears the script with an empty text'),
  'update-status': outside('changes the status'),
  cancel: both('cancels: gone from the list, kept in the history'),
  number: both('names tasks by numbers'),
  'manage-others': outside('changes another group’s task, from the main group'),
  'manage-others-refused': outside('refused: changes another group’s task, from another group'),
} as const

const groups = {
  register: both('registers a group'),
  'register-config': outside('registers a group with settings for its container'),
  'register-mounts': outside('refused: registers a group with mounts'),
  'register-taken': outside('refused: registers a chat or a folder that is taken'),
  'register-folder': outside('refused: registers a folder that leads elsewhere'),
  'register-refused': outside('refused: registers a group, from another group'),
  unregister: both('unregisters a group'),
  refresh: outside('has the groups listed anew'),
  'refresh-refused': outside('refused: the same from another group'),
  signal: outside('refused: a signal with anything beside it'),
  'source-group': outside('refused: a `source_group` that is not the directory'),
} as const

const snapshots = {
  'tasks-shape': inside('`current_tasks.json`: every key and type'),
  'tasks-main': inside('… of the main group has everybody’s tasks'),
  'tasks-own': inside('… of another group has its own'),
  'tasks-live': inside('… is another as soon as a task is'),
  'tasks-host': inside('… has commands of the host with name and command'),
  'groups-main': inside('`available_groups.json` of the main group: every key and type'),
  'groups-others': inside('… of another group: nothing in it'),
  todos: inside('`todos.json`: every key and type'),
  'todo-done': both('completes a todo by renaming a list of its own over `todos.json`'),
  services: inside('`services.json`: every key and type'),
  readonly: inside('cannot be written or replaced from inside'),
} as const

const answers = {
  result: both('a service’s result'),
  failure: inside('a service’s error'),
  memory: inside('saves, recalls, lists and forgets memories'),
  calendar: both('lists calendars and events, makes and deletes one'),
  question: both('asks people, and is given their answer'),
  'shell-allow': inside('a shell command is allowed'),
  'shell-deny': both('a shell command is denied, by a person'),
  'merge-success': both('commits are merged'),
  'merge-failure': inside('commits cannot be merged'),
  skill: both('a skill’s result'),
  'skill-failure': inside('a skill’s error'),
  receipt: inside('a receipt: done'),
  'receipt-refused': inside('a receipt: refused, with code and message'),
  progress: inside('how far a request has come'),
  'take-back': inside('takes a request back'),
  repeat: both('the same id again: the same answer, done once'),
  unasked: inside('without a request id: no file that it does not expect'),
} as const

const host = {
  job: outside('schedules a command on the host, which runs'),
  'job-refused': outside('refused: the same from another group'),
  periodic: outside('makes a periodic agent: group, folder, instructions, task'),
  'periodic-refused': outside('refused: the same from another group'),
  deploy: both('deploys: the host restarts, its next run goes on with prompt and session'),
  'deploy-refused': outside('refused: the same from another group'),
  reset: both('begins anew, ending at once: nothing is repeated'),
  'reset-message': both('leaves a message for its successor, which gets it once'),
  finished: both('says that scheduled work is finished, ending at once: it counts as done'),
} as const

export const kinds = {
  'How a container is started': start,
  'What it says': said,
  'What it is told': told,
  'How it writes files': files,
  Messages: messages,
  Tasks: tasks,
  Groups: groups,
  'What it is shown': snapshots,
  'Requests and answers': answers,
  'What it asks of the host': host,
} as const

export const features = {
  ...start,
  ...said,
  ...told,
  ...files,
  ...messages,
  ...tasks,
  ...groups,
  ...snapshots,
  ...answers,
  ...host,
} as const
export type FeatureId = keyof typeof features

export const isFeature = (id: string): id is FeatureId => Object.hasOwn(features, id)
