import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { FeatureId } from './features.ts'
import { type Ground, git } from './ground.ts'
import type { Found, Refused } from './world.ts'

/**
 * What a feature has to have caused, looked at from outside: in the database, the directories, the repositories.
 * Whatever the dialect was, the effect is the same. A check throws what is wrong.
 */
export type Effects = Readonly<Partial<Record<FeatureId, (ground: Ground) => unknown>>>

function must(condition: unknown, otherwise: string): asserts condition {
  if (!condition) throw new Error(otherwise)
}

const like = (row: Found | undefined, what: string, expected: Found) => {
  must(row, `${what} is not there`)
  for (const [name, value] of Object.entries(expected))
    must(
      row[name] === value,
      `${what}: ${name} is ${JSON.stringify(row[name])} and not ${JSON.stringify(value)}`,
    )
}

/** A message, or where a project says nothing in files a task, that harms nobody. */
const harmless = ({ message, task }: Ground, text: string) => message(text) ?? task(text)

const said =
  (text: string, more: Found = {}) =>
  (ground: Ground) => {
    const folder = text.split(':')[0] ?? ''
    const own = { group_folder: folder, jid: `local:${folder}`, kind: 'text', status: 'sent' }
    like(ground.message(text), text, { ...own, ...more })
  }
const scheduled =
  (what: string, more: Found = {}, folder = 'other') =>
  (ground: Ground) =>
    like(ground.task(`${folder}: ${what}`), what, {
      group_folder: folder,
      jid: `local:${folder}`,
      created_by: folder,
      ...more,
    })

/** Refused in this group, with this code, so many times. */
const refusedAs = (ground: Ground, group: string, types: readonly string[], code: string, count = 1) => {
  const all = matching(ground.refused(), group, types, code)
  must(
    all.length === count,
    `${types.join(' or ')} of ${group}: ${all.length} refused with ${code} and not ${count}`,
  )
}
const matching = (all: readonly Refused[], group: string, types: readonly string[], code: string) =>
  all.filter(one => one.source_group === group && one.code === code && types.includes(String(one.type)))

/** Version 1 has no field for a claim, and refuses what it has no field for. */
const hasClaims = (ground: Ground) => ground.column.dialect !== 'hatchway'

const messageTypes = ['message', 'send_message']
const refresh = ['refresh_groups']

const inOneRun = (ground: Ground, ...orders: string[]) => {
  const runs = orders.map(order => ground.runsThatDid('other', order)[0])
  must(
    runs[0] !== undefined && new Set(runs).size === 1,
    `${orders.join(', ')} were done in ${runs.join(', ')}`,
  )
}
const once = (ground: Ground, order: string) => {
  const runs = ground.runsThatDid('other', order)
  must(runs.length === 1, `${order} was done ${runs.length} times`)
  return runs[0]
}
const answeredOnce = (ground: Ground, order: string) => {
  const all = ground
    .messages('other')
    .filter(text => text === `did ${order}` || text.startsWith(`did ${order}\n`))
  must(all.length === 1, `${order} was answered ${all.length} times`)
}
/** by another run than the one that held on, or by the same */
const after = (hold: string, isSame: boolean) => (ground: Ground) => {
  const message = once(ground, `${hold}-message`)
  answeredOnce(ground, `${hold}-message`)
  const holder = ground.runsThatDid('other', hold)[0]
  must((message === holder) === isSame, isSame ? 'another run answered' : 'the same run answered')
}

const instant = (text: string) => Date.parse(text)
const wholeFile = (path: string) => {
  must(statSync(path, { throwIfNoEntry: false }), `${path} is not there`)
  return readFileSync(path, 'utf8')
}

export const effects: Effects = {
  scheduled(ground) {
    const runs = ground.runs('other').filter(({ kind }) => kind === 'task')
    must(runs.length > 0, 'there was no scheduled run')
    const said = ground.messages('other').some(text => text.startsWith('did tick'))
    must(said, 'its answer is not in the chat')
  },
  answer: ground =>
    must(
      ground.messages('main').some(text => text.startsWith('did look files')),
      'its answer is not in the chat',
    ),
  several: ground => inOneRun(ground, 'look', 'meddle'),
  plain: ground =>
    must(
      ground.messages('other').some(text => /^did meddle\nin plain words$/.test(text)),
      'its lines are not in the chat',
    ),
  'todo-done': ground =>
    must(
      ground.rows("SELECT done FROM todos WHERE group_folder = 'main'").every(({ done }) => done === 1),
      'the host’s list has it as open',
    ),
  idle(ground) {
    once(ground, 'quiet')
    must(!ground.messages('other').includes('did quiet'), 'something was said')
  },
  error(ground) {
    once(ground, 'fail-once')
    const failed = ground.runs('other').filter(({ error }) => error === 'it broke on purpose')
    must(failed.length === 1, `${failed.length} runs failed with the error that it told`)
    answeredOnce(ground, 'fail-once')
  },
  stream(ground) {
    const [run] = ground.runs('other')
    const steps = ground.rows('SELECT kind, name, text FROM steps WHERE run = ?', run?.seq ?? null)
    const has = (kind: string, text: string) =>
      must(
        steps.some(step => step.kind === kind && String(step.text).includes(text)),
        `the transcript has no ${kind}: ${text}`,
      )
    has('thinking', 'let me see')
    has('tool_call', '/workspace/group/notes.md')
    has('tool_result', 'no notes')
    has('text', 'here it is')
    if (ground.column.dialect === 'pynchy') has('notice', 'init')
  },
  outbox: ground => answeredOnce(ground, 'second'),
  followup(ground) {
    inOneRun(ground, 'slow', 'second')
    answeredOnce(ground, 'second')
  },
  close(ground) {
    const ended = ground.runs('other').filter(({ status }) => status === 'done')
    must(ended.length > 1, 'no run has ended as it should')
  },
  'close-first': after('hold-close-first', false),
  'close-last': after('hold-close-last', true),
  'close-before': after('hold-close-before', false),
  interrupt(ground) {
    once(ground, 'after-endless')
    answeredOnce(ground, 'after-endless')
    const told = ground.messages('other').filter(text => text.startsWith('I was interrupted'))
    must(told.length === 1, `people were told ${told.length} times`)
    const failed = ground.runs('other').filter(({ error }) => String(error).includes('more than'))
    must(failed.length === 0, `a run failed: ${failed[0]?.error}`)
  },

  names(ground) {
    const { names, documentNames } = ground.column
    const shell = /^(refresh|halves|empty)_\d+\.json$/
    const files = ['main', 'other'].flatMap(ground.journal).map(({ file }) => String(file))
    must(files.length > 20, `${files.length} files in the journal`)
    const odd = files.find(file => ![names, documentNames, shell].some(pattern => pattern?.test(file)))
    must(odd === undefined, `a file named ${odd} was handled`)
  },
  'names-document': ground =>
    like(ground.message('other: as the document says'), 'it', { status: 'sent', jid: 'local:other' }),
  temporary(ground) {
    const pattern = ground.column.temporary
    for (const folder of ['main', 'other']) {
      must(!harmless(ground, `${folder}: never`), 'what it holds has happened')
      const left = ['messages', 'tasks'].flatMap(box => ground.names(folder, box))
      must(left.length === 1 && pattern?.test(left[0] ?? ''), `what lies there is ${left.join(', ')}`)
    }
  },
  echo: ground =>
    must(
      ground
        .journal('main')
        .some(({ file, outcome }) => /^refresh_\d+\.json$/.test(String(file)) && isDone(outcome)),
      'it was not carried out',
    ),
  halves(ground) {
    for (const folder of ['main', 'other'])
      must(harmless(ground, `${folder}: halves`), `what it asks for has not happened in ${folder}`)
  },
  order(ground) {
    for (const folder of ['main', 'other']) {
      const texts = [
        ...ground.rows('SELECT text FROM messages ORDER BY id').map(({ text }) => String(text)),
        ...ground.rows('SELECT prompt FROM tasks ORDER BY rowid').map(({ prompt }) => String(prompt)),
      ].filter(text => text.startsWith(`${folder}: order`))
      must(texts.length === 30, `${texts.length} of 30`)
      must(texts.join() === texts.toSorted().join(), `they came as ${texts.join(', ')}`)
    }
  },
  unknown(ground) {
    for (const folder of ['main', 'other']) refusedAs(ground, folder, ['dance'], 'unknown_type')
  },
  malformed(ground) {
    for (const folder of ['main', 'other']) {
      const all = ground.refused().filter(one => one.source_group === folder && one.code === 'invalid_json')
      must(all.length === 1 && /^empty_\d+\.json$/.test(all[0]?.original_file ?? ''), `${all.length} refused`)
    }
  },
  errors(ground) {
    const all = ground.refused()
    for (const { name, source_group, original_file } of all)
      must(
        name.startsWith(`${source_group}-`) && name.endsWith(`-${original_file}.error.json`),
        `${name} does not name ${original_file}`,
      )
    const whole = all.flatMap(({ name }) => [name, name.replace(/\.json$/, '')]).toSorted()
    must(ground.errorNames().join() === whole.join(), `errors/ holds ${ground.errorNames().join(', ')}`)
    const unexpected = all.filter(
      one => !expectedCodes(ground).has(`${one.source_group} ${one.type} ${one.code}`),
    )
    must(
      unexpected.length === 0,
      unexpected.map(one => `${one.source_group} ${one.type} ${one.code}: ${one.error}`).join('; '),
    )
  },

  message: said('other: hello'),
  sender: said('other: researched', { sender: 'Researcher' }),
  elsewhere: said('main: to another chat', { jid: 'local:third' }),
  'elsewhere-refused'(ground) {
    must(!ground.message('other: to another chat'), 'it was said')
    refusedAs(ground, 'other', messageTypes, 'forbidden', hasClaims(ground) ? 2 : 1)
  },
  claims(ground) {
    must(!ground.message('other: as somebody else'), 'it was said')
    if (hasClaims(ground)) refusedAs(ground, 'other', messageTypes, 'forbidden', 2)
    else refusedAs(ground, 'other', messageTypes, 'invalid_field')
  },
  'send-message': said('other: hello'),
  reply: said('other: replied', { speech: null }),
  'reply-audio': ground => speaks(ground, 'other: aloud', { text: 'Good morning.', title: 'Greeting' }),
  speak: ground => speaks(ground, 'other: spoken', { text: 'other: spoken' }),
  reaction: ground =>
    like(ground.message('👍'), '👍', { kind: 'reaction', message_id: 'message-42', status: 'sent' }),
  'reaction-last': ground =>
    like(ground.message('🎉'), '🎉', { kind: 'reaction', message_id: null, status: 'sent' }),

  cron(ground) {
    const row = ground.task('other: changed') ?? ground.task('other: cron')
    like(row, 'it', { schedule_type: 'cron', group_folder: 'other', status: 'active' })
  },
  interval: scheduled('interval', { schedule_type: 'interval', schedule_value: '31536000000' }),
  once: scheduled('once', { schedule_type: 'once', next_run: instant('2099-01-31T09:30:00Z') }),
  'once-local'(ground) {
    const [row] = ground.rows("SELECT * FROM tasks WHERE prompt = 'other: once local'")
    like(row, 'it', { schedule_value: '2099-01-31T09:30:00', timezone: 'Asia/Tokyo' })
    const [main] = ground.rows("SELECT * FROM tasks WHERE prompt = 'main: no mode'")
    like(main, 'one with a zone', { next_run: instant('2099-01-31T09:30:00Z') })
    const [audit] = ground
      .journal('other')
      .filter(({ outcome }) => String(outcome).includes('2099-01-31T00:30:00.000Z'))
    must(audit, 'its next run is not at that time in the configured zone')
  },
  'own-chat': scheduled('no mode'),
  'other-chat'(ground) {
    like(ground.task('main: for third'), 'it', {
      group_folder: 'third',
      jid: 'local:third',
      created_by: 'main',
    })
  },
  'other-chat-refused'(ground) {
    must(!ground.task('other: for third'), 'it was scheduled')
    refusedAs(ground, 'other', ['schedule_task'], 'forbidden')
  },
  'task-id': scheduled('rich', { id: 'other-own-id' }),
  'task-model': scheduled('rich', { model: 'claude-sonnet-4-5' }),
  context(ground) {
    scheduled('once', { context_mode: 'isolated' })(ground)
    const row = ground.task('other: changed') ?? ground.task('other: cron')
    like(row, 'it', { context_mode: 'group' })
  },
  'context-default': ground => scheduled('no mode', { context_mode: ground.column.contextDefault })(ground),
  'context-bad': scheduled('bad mode', { context_mode: 'isolated' }),
  'bad-schedule'(ground) {
    for (const folder of ['main', 'other']) {
      must(!ground.task(`${folder}: bad`), 'it was scheduled')
      refusedAs(ground, folder, ['schedule_task'], 'bad_schedule')
    }
  },
  pause: ground => changed(ground, 'pause_task'),
  resume: ground => changed(ground, 'resume_task'),
  update: scheduled('changed', { schedule_value: '0 10 1 1 *' }),
  'update-script': scheduled('rich', { script: null }),
  'update-status': scheduled('interval', { status: 'paused' }),
  cancel: scheduled('once local', { status: 'cancelled', next_run: null }),
  number: ground => changed(ground, 'cancel_task'),
  'manage-others': scheduled('no mode', { status: 'paused' }),
  'manage-others-refused'(ground) {
    like(ground.task('main: once'), 'it', { status: 'active' })
    refusedAs(ground, 'other', ['cancel_task'], 'forbidden')
  },

  register(ground) {
    const row = ground
      .journal('main')
      .find(({ type, outcome }) => type === 'register_group' && isDone(outcome))
    must(row, 'it was not registered')
    const { id, dialect, has } = ground.column
    like(ground.group('timed'), 'it', { jid: 'local:timed', name: 'Called timed', trigger_text: '@New' })
    like(ground.group('timed'), 'it', { main: 0, dialect })
    if (id === 'fork') like(ground.group('timed'), 'it', { channel: 'whatsapp' })
    if (!has.includes('unregister')) like(ground.group('fresh'), 'it', { requires_trigger: 1 })
  },
  'register-config': ground => like(ground.group('timed'), 'it', { jid: 'local:timed' }),
  'register-mounts'(ground) {
    must(!ground.group('mounted'), 'it was registered')
    refusedAs(ground, 'main', ['register_group'], 'forbidden')
  },
  'register-taken'(ground) {
    like(ground.group('third'), 'the third', { jid: 'local:third', name: 'third' })
    must(!ground.group('taken'), 'it was registered')
    refusedAs(ground, 'main', ['register_group'], 'conflict', 2)
  },
  'register-folder': ground => refusedAs(ground, 'main', ['register_group'], 'invalid_field'),
  'register-refused'(ground) {
    must(!ground.group('mine'), 'it was registered')
    refusedAs(ground, 'other', ['register_group'], 'forbidden')
  },
  unregister: ground => must(!ground.group('fresh'), 'it is still there'),
  refresh: ground =>
    must(
      ground.journal('main').some(({ type, outcome }) => refresh.includes(String(type)) && isDone(outcome)),
      'it was not carried out',
    ),
  'refresh-refused': ground => refusedAs(ground, 'other', refresh, 'forbidden'),
  signal: ground => refusedAs(ground, 'main', refresh, 'invalid_field'),
  'source-group'(ground) {
    must(!ground.task('other: as main'), 'it was scheduled')
    refusedAs(ground, 'other', ['schedule_task'], 'sender_mismatch')
  },

  result: ground => must(asked(ground).includes('count'), 'the service was not asked'),
  calendar: ground => noted(ground, 'create_event'),
  question(ground) {
    const [row] = ground.rows('SELECT * FROM questions')
    like(row, 'the question', { status: 'answered', group_folder: 'main' })
  },
  'shell-deny'(ground) {
    const [row] = ground.rows(
      "SELECT outcome FROM audit WHERE action = 'shell' AND decided_by LIKE '%operator%'",
    )
    must(row, 'nobody has denied it')
  },
  'merge-success': ground =>
    must(
      git(ground.repository, 'log', '--format=%s', 'main').includes('made in the container'),
      'the commit is not on the branch',
    ),
  skill: ground => must(asked(ground).includes('x_post hello world'), 'the service was not asked'),
  repeat: ground => must(asked(ground).filter(line => line === 'tally').length === 1, 'it was done twice'),

  job: ground => must(wholeFile(join(ground.jobs, 'job-ran.txt')) === 'it ran\n', 'it did not run'),
  'job-refused': ground => refusedAs(ground, 'other', ['schedule_host_job'], 'forbidden'),
  periodic(ground) {
    const [agent] = ground.rows("SELECT * FROM periodic_agents WHERE name = 'Morning news of main'")
    must(agent, 'it was not made')
    const folder = String(agent.group_folder)
    like(ground.group(folder), 'its group', { main: 0, jid: 'local:news-of-main' })
    like(ground.rows('SELECT * FROM tasks WHERE id = ?', agent.task_id ?? null)[0], 'its task', {
      ...{ schedule_type: 'cron', schedule_value: '0 7 1 1 *', prompt: 'What is new?' },
      ...{ context_mode: 'isolated', group_folder: folder },
    })
    must(
      wholeFile(join(ground.data, 'groups', folder, 'CLAUDE.md')).includes('Be brief.'),
      'its instructions are not in its folder',
    )
  },
  'periodic-refused': ground => refusedAs(ground, 'other', ['create_periodic_agent'], 'forbidden'),
  deploy(ground) {
    const [row] = ground.rows('SELECT * FROM deploys')
    like(row, 'the deploy', {
      status: 'done',
      group_folder: 'main',
      to_revision: git(join(ground.home, 'checkout'), 'rev-parse', 'HEAD'),
    })
    must(ground.runsThatDid('main', 'resumed').length === 1, 'it did not go on once')
  },
  'deploy-refused': ground => refusedAs(ground, 'other', ['deploy'], 'forbidden'),
  reset: ground => void once(ground, 'reset'),
  'reset-message'(ground) {
    once(ground, 'reset-message')
    once(ground, 'successor')
  },
  finished(ground) {
    once(ground, 'finish')
    const [row] = ground.rows(
      "SELECT o.status FROM occurrences o JOIN tasks t ON t.id = o.task_id WHERE t.prompt = 'do finish'",
    )
    like(row, 'the scheduled run', { status: 'done' })
  },
}

const isDone = (outcome: unknown): boolean => String(outcome).includes('"ok":true')

const changed = (ground: Ground, command: string) =>
  must(
    ground.journal('other').some(({ type, outcome }) => type === command && isDone(outcome)),
    `no ${command} was carried out`,
  )

const speaks = (ground: Ground, text: string, speech: object) => {
  const row = ground.message(text)
  must(row, `${text} was not said`)
  must(row.speech === JSON.stringify(speech), `aloud it says ${row.speech}`)
}

const asked = (ground: Ground): string[] => wholeFile(join(ground.notes, 'asked')).trim().split('\n')

const noted = (ground: Ground, tool: string) =>
  must(
    ground.rows('SELECT seq FROM audit WHERE action = ?', tool).length > 0,
    `${tool} is not in the audit log`,
  )

/** Everything that containers do on purpose and must not. */
const expectedCodes = ({ column }: Ground): ReadonlySet<string> =>
  new Set([
    ...['main', 'other'].flatMap(folder => [
      `${folder} dance unknown_type`,
      `${folder} null invalid_json`,
      `${folder} ? invalid_json`,
      `${folder} schedule_task bad_schedule`,
    ]),
    ...messageTypes.map(type => `other ${type} forbidden`),
    ...['schedule_task', 'cancel_task', 'register_group', 'refresh_groups'].map(
      type => `other ${type} forbidden`,
    ),
    ...['schedule_host_job', 'create_periodic_agent', 'deploy'].map(type => `other ${type} forbidden`),
    ...['forbidden', 'conflict', 'invalid_field'].map(code => `main register_group ${code}`),
    ...(column.id === 'nanoclaw' ? ['other pause_task not_found'] : []),
    ...(column.id === 'pynchy'
      ? ['main refresh_groups invalid_field', 'other security:bash_check denied']
      : []),
    ...(column.id === 'mdclaw' ? ['other schedule_task sender_mismatch'] : []),
    ...(column.id === 'hatchway'
      ? [
          'main pause_task not_found',
          'other check_shell denied',
          ...['main', 'other'].map(folder => `${folder} send_message invalid_field`),
        ]
      : []),
  ])
