import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { FeatureId } from './features.ts'
import type { Found, Refused } from './observer.ts'
import { git, type Testbed } from './testbed.ts'

/**
 * What a feature has to have caused, looked at from outside: in the database, the directories, the repositories.
 * Whatever the dialect was, the effect is the same. A check throws what is wrong.
 */
export type Effects = Readonly<Partial<Record<FeatureId, (testbed: Testbed) => unknown>>>

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
const harmless = ({ message, task }: Testbed, text: string) => message(text) ?? task(text)

const said =
  (text: string, more: Found = {}) =>
  (testbed: Testbed) => {
    const folder = text.split(':')[0] ?? ''
    const own = { group_folder: folder, jid: `local:${folder}`, kind: 'text', status: 'sent' }
    like(testbed.message(text), text, { ...own, ...more })
  }
const scheduled =
  (what: string, more: Found = {}, folder = 'other') =>
  (testbed: Testbed) =>
    like(testbed.task(`${folder}: ${what}`), what, {
      group_folder: folder,
      jid: `local:${folder}`,
      created_by: folder,
      ...more,
    })

/** Refused in this group, with this code, so many times. */
const refusedAs = (testbed: Testbed, group: string, types: readonly string[], code: string, count = 1) => {
  const all = matching(testbed.refused(), group, types, code)
  must(
    all.length === count,
    `${types.join(' or ')} of ${group}: ${all.length} refused with ${code} and not ${count}`,
  )
}
const matching = (all: readonly Refused[], group: string, types: readonly string[], code: string) =>
  all.filter(one => one.source_group === group && one.code === code && types.includes(String(one.type)))

/** Version 1 has no field for a claim, and refuses what it has no field for. */
const hasClaims = (testbed: Testbed) => testbed.column.dialect !== 'hatchway'

const messageTypes = ['message', 'send_message']
const refresh = ['refresh_groups']

const inOneRun = (testbed: Testbed, ...orders: string[]) => {
  const runs = orders.map(order => testbed.runsThatDid('other', order)[0])
  must(
    runs[0] !== undefined && new Set(runs).size === 1,
    `${orders.join(', ')} were done in ${runs.join(', ')}`,
  )
}
const once = (testbed: Testbed, order: string) => {
  const runs = testbed.runsThatDid('other', order)
  must(runs.length === 1, `${order} was done ${runs.length} times`)
  return runs[0]
}
const answeredOnce = (testbed: Testbed, order: string) => {
  const all = testbed
    .messages('other')
    .filter(text => text === `did ${order}` || text.startsWith(`did ${order}\n`))
  must(all.length === 1, `${order} was answered ${all.length} times`)
}
/** by another run than the one that held on, or by the same */
const after = (hold: string, isSame: boolean) => (testbed: Testbed) => {
  const message = once(testbed, `${hold}-message`)
  answeredOnce(testbed, `${hold}-message`)
  const firstRun = testbed.runsThatDid('other', hold)[0]
  must((message === firstRun) === isSame, isSame ? 'another run answered' : 'the same run answered')
}

const instant = (text: string) => Date.parse(text)
const wholeFile = (path: string) => {
  must(statSync(path, { throwIfNoEntry: false }), `${path} is not there`)
  return readFileSync(path, 'utf8')
}

export const effects: Effects = {
  scheduled(testbed) {
    const runs = testbed.runs('other').filter(({ kind }) => kind === 'task')
    must(runs.length > 0, 'there was no scheduled run')
    const said = testbed.messages('other').some(text => text.startsWith('did tick'))
    must(said, 'its answer is not in the chat')
  },
  answer: testbed =>
    must(
      testbed.messages('main').some(text => text.startsWith('did look files')),
      'its answer is not in the chat',
    ),
  several: testbed => inOneRun(testbed, 'look', 'meddle'),
  plain: testbed =>
    must(
      testbed.messages('other').some(text => /^did meddle\nin plain words$/.test(text)),
      'its lines are not in the chat',
    ),
  'todo-done': testbed =>
    must(
      testbed.rows("SELECT done FROM todos WHERE group_folder = 'main'").every(({ done }) => done === 1),
      'the host’s list has it as open',
    ),
  idle(testbed) {
    once(testbed, 'quiet')
    must(!testbed.messages('other').includes('did quiet'), 'something was said')
  },
  error(testbed) {
    once(testbed, 'fail-once')
    const failed = testbed.runs('other').filter(({ error }) => error === 'it broke on purpose')
    must(failed.length === 1, `${failed.length} runs failed with the error that it told`)
    answeredOnce(testbed, 'fail-once')
  },
  stream(testbed) {
    const [run] = testbed.runs('other')
    const steps = testbed.rows('SELECT kind, name, text FROM steps WHERE run = ?', run?.seq ?? null)
    const has = (kind: string, text: string) =>
      must(
        steps.some(step => step.kind === kind && String(step.text).includes(text)),
        `the transcript has no ${kind}: ${text}`,
      )
    has('thinking', 'let me see')
    has('tool_call', '/workspace/group/notes.md')
    has('tool_result', 'no notes')
    has('text', 'here it is')
    if (testbed.column.dialect === 'pynchy') has('notice', 'init')
  },
  outbox: testbed => answeredOnce(testbed, 'second'),
  followup(testbed) {
    inOneRun(testbed, 'slow', 'second')
    answeredOnce(testbed, 'second')
  },
  close(testbed) {
    const ended = testbed.runs('other').filter(({ status }) => status === 'done')
    must(ended.length > 1, 'no run has ended as it should')
  },
  'close-first': after('hold-close-first', false),
  'close-last': after('hold-close-last', true),
  'close-before': after('hold-close-before', false),
  interrupt(testbed) {
    once(testbed, 'after-endless')
    answeredOnce(testbed, 'after-endless')
    const told = testbed.messages('other').filter(text => text.startsWith('I was interrupted'))
    must(told.length === 1, `people were told ${told.length} times`)
    const failed = testbed.runs('other').filter(({ error }) => String(error).includes('more than'))
    must(failed.length === 0, `a run failed: ${failed[0]?.error}`)
  },

  names(testbed) {
    const { names, documentNames } = testbed.column
    const shell = /^(refresh|halves|empty)_\d+\.json$/
    const files = ['main', 'other'].flatMap(testbed.journal).map(({ file }) => String(file))
    must(files.length > 20, `${files.length} files in the journal`)
    const odd = files.find(file => ![names, documentNames, shell].some(pattern => pattern?.test(file)))
    must(odd === undefined, `a file named ${odd} was handled`)
  },
  'names-document': testbed =>
    like(testbed.message('other: as the document says'), 'it', { status: 'sent', jid: 'local:other' }),
  temporary(testbed) {
    const pattern = testbed.column.temporary
    for (const folder of ['main', 'other']) {
      must(!harmless(testbed, `${folder}: never`), 'what it holds has happened')
      const left = ['messages', 'tasks'].flatMap(box => testbed.names(folder, box))
      must(left.length === 1 && pattern?.test(left[0] ?? ''), `what lies there is ${left.join(', ')}`)
    }
  },
  echo: testbed =>
    must(
      testbed
        .journal('main')
        .some(({ file, outcome }) => /^refresh_\d+\.json$/.test(String(file)) && isDone(outcome)),
      'it was not carried out',
    ),
  halves(testbed) {
    for (const folder of ['main', 'other'])
      must(harmless(testbed, `${folder}: halves`), `what it asks for has not happened in ${folder}`)
  },
  order(testbed) {
    for (const folder of ['main', 'other']) {
      const texts = [
        ...testbed.rows('SELECT text FROM messages ORDER BY id').map(({ text }) => String(text)),
        ...testbed.rows('SELECT prompt FROM tasks ORDER BY rowid').map(({ prompt }) => String(prompt)),
      ].filter(text => text.startsWith(`${folder}: order`))
      must(texts.length === 30, `${texts.length} of 30`)
      must(texts.join() === texts.toSorted().join(), `they came as ${texts.join(', ')}`)
    }
  },
  unknown(testbed) {
    for (const folder of ['main', 'other']) refusedAs(testbed, folder, ['dance'], 'unknown_type')
  },
  malformed(testbed) {
    for (const folder of ['main', 'other']) {
      const all = testbed.refused().filter(one => one.source_group === folder && one.code === 'invalid_json')
      must(all.length === 1 && /^empty_\d+\.json$/.test(all[0]?.original_file ?? ''), `${all.length} refused`)
    }
  },
  errors(testbed) {
    const all = testbed.refused()
    for (const { name, source_group, original_file } of all)
      must(
        name.startsWith(`${source_group}-`) && name.endsWith(`-${original_file}.error.json`),
        `${name} does not name ${original_file}`,
      )
    const whole = all.flatMap(({ name }) => [name, name.replace(/\.json$/, '')]).toSorted()
    must(testbed.errorNames().join() === whole.join(), `errors/ holds ${testbed.errorNames().join(', ')}`)
    const unexpected = all.filter(
      one => !expectedCodes(testbed).has(`${one.source_group} ${one.type} ${one.code}`),
    )
    must(
      unexpected.length === 0,
      unexpected.map(one => `${one.source_group} ${one.type} ${one.code}: ${one.error}`).join('; '),
    )
  },

  message: said('other: hello'),
  sender: said('other: researched', { sender: 'Researcher' }),
  elsewhere: said('main: to another chat', { jid: 'local:third' }),
  'elsewhere-refused'(testbed) {
    must(!testbed.message('other: to another chat'), 'it was said')
    refusedAs(testbed, 'other', messageTypes, 'forbidden', hasClaims(testbed) ? 2 : 1)
  },
  claims(testbed) {
    must(!testbed.message('other: as somebody else'), 'it was said')
    if (hasClaims(testbed)) refusedAs(testbed, 'other', messageTypes, 'forbidden', 2)
    else refusedAs(testbed, 'other', messageTypes, 'invalid_field')
  },
  'send-message': said('other: hello'),
  reply: said('other: replied', { speech: null }),
  'reply-audio': testbed => speaks(testbed, 'other: aloud', { text: 'Good morning.', title: 'Greeting' }),
  speak: testbed => speaks(testbed, 'other: spoken', { text: 'other: spoken' }),
  reaction: testbed =>
    like(testbed.message('👍'), '👍', { kind: 'reaction', message_id: 'message-42', status: 'sent' }),
  'reaction-last': testbed =>
    like(testbed.message('🎉'), '🎉', { kind: 'reaction', message_id: null, status: 'sent' }),

  cron(testbed) {
    const row = testbed.task('other: changed') ?? testbed.task('other: cron')
    like(row, 'it', { schedule_type: 'cron', group_folder: 'other', status: 'active' })
  },
  interval: scheduled('interval', { schedule_type: 'interval', schedule_value: '31536000000' }),
  once: scheduled('once', { schedule_type: 'once', next_run: instant('2099-01-31T09:30:00Z') }),
  'once-local'(testbed) {
    const [row] = testbed.rows("SELECT * FROM tasks WHERE prompt = 'other: once local'")
    like(row, 'it', { schedule_value: '2099-01-31T09:30:00', timezone: 'Asia/Tokyo' })
    const [main] = testbed.rows("SELECT * FROM tasks WHERE prompt = 'main: no mode'")
    like(main, 'one with a zone', { next_run: instant('2099-01-31T09:30:00Z') })
    const [audit] = testbed
      .journal('other')
      .filter(({ outcome }) => String(outcome).includes('2099-01-31T00:30:00.000Z'))
    must(audit, 'its next run is not at that time in the configured zone')
  },
  'own-chat': scheduled('no mode'),
  'other-chat'(testbed) {
    like(testbed.task('main: for third'), 'it', {
      group_folder: 'third',
      jid: 'local:third',
      created_by: 'main',
    })
  },
  'other-chat-refused'(testbed) {
    must(!testbed.task('other: for third'), 'it was scheduled')
    refusedAs(testbed, 'other', ['schedule_task'], 'forbidden')
  },
  'task-id': scheduled('rich', { id: 'other-own-id' }),
  'task-model': scheduled('rich', { model: 'claude-sonnet-4-5' }),
  context(testbed) {
    scheduled('once', { context_mode: 'isolated' })(testbed)
    const row = testbed.task('other: changed') ?? testbed.task('other: cron')
    like(row, 'it', { context_mode: 'group' })
  },
  'context-default': testbed =>
    scheduled('no mode', { context_mode: testbed.column.contextDefault })(testbed),
  'context-bad': scheduled('bad mode', { context_mode: 'isolated' }),
  'bad-schedule'(testbed) {
    for (const folder of ['main', 'other']) {
      must(!testbed.task(`${folder}: bad`), 'it was scheduled')
      refusedAs(testbed, folder, ['schedule_task'], 'bad_schedule')
    }
  },
  pause: testbed => changed(testbed, 'pause_task'),
  resume: testbed => changed(testbed, 'resume_task'),
  update: scheduled('changed', { schedule_value: '0 10 1 1 *' }),
  'update-script': scheduled('rich', { script: null }),
  'update-status': scheduled('interval', { status: 'paused' }),
  cancel: scheduled('once local', { status: 'cancelled', next_run: null }),
  number: testbed => changed(testbed, 'cancel_task'),
  'manage-others': scheduled('no mode', { status: 'paused' }),
  'manage-others-refused'(testbed) {
    like(testbed.task('main: once'), 'it', { status: 'active' })
    refusedAs(testbed, 'other', ['cancel_task'], 'forbidden')
  },

  register(testbed) {
    const row = testbed
      .journal('main')
      .find(({ type, outcome }) => type === 'register_group' && isDone(outcome))
    must(row, 'it was not registered')
    const { id, dialect, has } = testbed.column
    like(testbed.group('timed'), 'it', { jid: 'local:timed', name: 'Called timed', trigger_text: '@New' })
    like(testbed.group('timed'), 'it', { main: 0, dialect })
    if (id === 'fork') like(testbed.group('timed'), 'it', { channel: 'whatsapp' })
    if (!has.includes('unregister')) like(testbed.group('fresh'), 'it', { requires_trigger: 1 })
  },
  'register-config': testbed => like(testbed.group('timed'), 'it', { jid: 'local:timed' }),
  'register-mounts'(testbed) {
    must(!testbed.group('mounted'), 'it was registered')
    refusedAs(testbed, 'main', ['register_group'], 'forbidden')
  },
  'register-taken'(testbed) {
    like(testbed.group('third'), 'the third', { jid: 'local:third', name: 'third' })
    must(!testbed.group('taken'), 'it was registered')
    refusedAs(testbed, 'main', ['register_group'], 'conflict', 2)
  },
  'register-folder': testbed => refusedAs(testbed, 'main', ['register_group'], 'invalid_field'),
  'register-refused'(testbed) {
    must(!testbed.group('mine'), 'it was registered')
    refusedAs(testbed, 'other', ['register_group'], 'forbidden')
  },
  unregister: testbed => must(!testbed.group('fresh'), 'it is still there'),
  refresh: testbed =>
    must(
      testbed.journal('main').some(({ type, outcome }) => refresh.includes(String(type)) && isDone(outcome)),
      'it was not carried out',
    ),
  'refresh-refused': testbed => refusedAs(testbed, 'other', refresh, 'forbidden'),
  signal: testbed => refusedAs(testbed, 'main', refresh, 'invalid_field'),
  'source-group'(testbed) {
    must(!testbed.task('other: as main'), 'it was scheduled')
    refusedAs(testbed, 'other', ['schedule_task'], 'sender_mismatch')
  },

  result: testbed => must(asked(testbed).includes('count'), 'the service was not asked'),
  calendar: testbed => noted(testbed, 'create_event'),
  question(testbed) {
    const [row] = testbed.rows('SELECT * FROM questions')
    like(row, 'the question', { status: 'answered', group_folder: 'main' })
  },
  'shell-deny'(testbed) {
    const [row] = testbed.rows(
      "SELECT outcome FROM audit WHERE action = 'shell' AND decided_by LIKE '%operator%'",
    )
    must(row, 'nobody has denied it')
  },
  'merge-success': testbed =>
    must(
      git(testbed.repository, 'log', '--format=%s', 'main').includes('made in the container'),
      'the commit is not on the branch',
    ),
  skill: testbed => must(asked(testbed).includes('x_post hello world'), 'the service was not asked'),
  repeat: testbed => must(asked(testbed).filter(line => line === 'tally').length === 1, 'it was done twice'),

  job: testbed => must(wholeFile(join(testbed.jobs, 'job-ran.txt')) === 'it ran\n', 'it did not run'),
  'job-refused': testbed => refusedAs(testbed, 'other', ['schedule_host_job'], 'forbidden'),
  periodic(testbed) {
    const [agent] = testbed.rows("SELECT * FROM periodic_agents WHERE name = 'Morning news of main'")
    must(agent, 'it was not made')
    const folder = String(agent.group_folder)
    like(testbed.group(folder), 'its group', { main: 0, jid: 'local:news-of-main' })
    like(testbed.rows('SELECT * FROM tasks WHERE id = ?', agent.task_id ?? null)[0], 'its task', {
      ...{ schedule_type: 'cron', schedule_value: '0 7 1 1 *', prompt: 'What is new?' },
      ...{ context_mode: 'isolated', group_folder: folder },
    })
    must(
      wholeFile(join(testbed.data, 'groups', folder, 'CLAUDE.md')).includes('Be brief.'),
      'its instructions are not in its folder',
    )
  },
  'periodic-refused': testbed => refusedAs(testbed, 'other', ['create_periodic_agent'], 'forbidden'),
  deploy(testbed) {
    const [row] = testbed.rows('SELECT * FROM deploys')
    like(row, 'the deploy', {
      status: 'done',
      group_folder: 'main',
      to_revision: git(join(testbed.home, 'checkout'), 'rev-parse', 'HEAD'),
    })
    must(testbed.runsThatDid('main', 'resumed').length === 1, 'it did not go on once')
  },
  'deploy-refused': testbed => refusedAs(testbed, 'other', ['deploy'], 'forbidden'),
  reset: testbed => void once(testbed, 'reset'),
  'reset-message'(testbed) {
    once(testbed, 'reset-message')
    once(testbed, 'successor')
  },
  finished(testbed) {
    once(testbed, 'finish')
    const [row] = testbed.rows(
      "SELECT o.status FROM occurrences o JOIN tasks t ON t.id = o.task_id WHERE t.prompt = 'do finish'",
    )
    like(row, 'the scheduled run', { status: 'done' })
  },
}

const isDone = (outcome: unknown): boolean => String(outcome).includes('"ok":true')

const changed = (testbed: Testbed, command: string) =>
  must(
    testbed.journal('other').some(({ type, outcome }) => type === command && isDone(outcome)),
    `no ${command} was carried out`,
  )

const speaks = (testbed: Testbed, text: string, speech: object) => {
  const row = testbed.message(text)
  must(row, `${text} was not said`)
  must(row.speech === JSON.stringify(speech), `aloud it says ${row.speech}`)
}

const asked = (testbed: Testbed): string[] => wholeFile(join(testbed.notes, 'asked')).trim().split('\n')

const noted = (testbed: Testbed, tool: string) =>
  must(
    testbed.rows('SELECT seq FROM audit WHERE action = ?', tool).length > 0,
    `${tool} is not in the audit log`,
  )

/** Everything that containers do on purpose and must not. */
const expectedCodes = ({ column }: Testbed): ReadonlySet<string> =>
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
