import { expect, test } from 'vitest'
import { type Intent, understand } from './understand.ts'

/** a Saturday afternoon in Berlin, the day before its clocks go forward */
const now = new Date('2026-03-28T13:00:00.500Z')
const berlin = (message: string, at = now): Intent => understand(message, at, 'Europe/Berlin', 'Hatch')
const once = (time: string) => ({ type: 'once', at: new Date(time) })
const interval = (ms: number) => ({ type: 'interval', ms })
const cron = (expression: string) => ({ type: 'cron', expression })
const remind = (when: object, text: string) => ({ kind: 'remind', when, text })

test.each([
  ['remind me in ten seconds to stretch', once('2026-03-28T13:00:10.500Z'), 'stretch'],
  ['Remind me to stretch in ten seconds.', once('2026-03-28T13:00:10.500Z'), 'stretch'],
  ['@Hatch please remind me in 25 seconds to stretch!', once('2026-03-28T13:00:25.500Z'), 'stretch'],
  [
    'Hatch, could you remind me in forty-five minutes to call Ann?',
    once('2026-03-28T13:45:00.500Z'),
    'call Ann',
  ],
  ['remind me in half an hour that the cake is done', once('2026-03-28T13:30:00.500Z'), 'the cake is done'],
  ['remind me in an hour and a half to leave', once('2026-03-28T14:30:00.500Z'), 'leave'],
  ['remind me in two hours and thirty minutes to leave', once('2026-03-28T15:30:00.500Z'), 'leave'],
  ['remind me to run 10 minutes in 2 hours', once('2026-03-28T15:00:00.500Z'), 'run 10 minutes'],
  ['remind me to buy ten apples in an hour', once('2026-03-28T14:00:00.500Z'), 'buy ten apples'],
  ['remind me at 16:30 about the train', once('2026-03-28T15:30:00Z'), 'the train'],
  ['remind me at half past four pm', once('2026-03-28T15:30:00Z'), ''],
  ['remind me at 9 to stand up', once('2026-03-29T07:00:00Z'), 'stand up'],
  ['tomorrow at 9 remind me to call', once('2026-03-29T07:00:00Z'), 'call'],
  ['remind me tomorrow at nine thirty to call', once('2026-03-29T07:30:00Z'), 'call'],
  ['remind me tomorrow to call', once('2026-03-29T07:00:00Z'), 'call'],
  [
    'remind me to call mom tomorrow about the party',
    once('2026-03-29T07:00:00Z'),
    'call mom about the party',
  ],
  ['remind me tonight to lock up', once('2026-03-28T21:00:00Z'), 'lock up'],
  ['remind us on Friday at 5pm to go home', once('2026-04-03T15:00:00Z'), 'go home'],
  ['remind me on the 5th to pay rent', once('2026-04-05T07:00:00Z'), 'pay rent'],
  ['remind me at 5pm EST to dial in', once('2026-03-28T22:00:00Z'), 'dial in'],
  ['set a reminder for tomorrow at noon to eat', once('2026-03-29T10:00:00Z'), 'eat'],
  ['in 10 minutes take the cake out', once('2026-03-28T13:10:00.500Z'), 'take the cake out'],
  ['wake me up tomorrow at 7', once('2026-03-29T05:00:00Z'), ''],
])('“%s” is a reminder for that instant', (message, when, text) => {
  expect(berlin(message)).toEqual(remind(when, text))
})

test('a day later is the same hour on the clock, a number of hours later is that many hours', () => {
  expect(berlin('remind me in 1 day to x')).toMatchObject({ when: once('2026-03-29T12:00:00.500Z') })
  expect(berlin('remind me in 24 hours to x')).toMatchObject({ when: once('2026-03-29T13:00:00.500Z') })
})

test('a time that the clock jumps over comes right after the jump', () => {
  expect(berlin('remind me tomorrow at 2:30 to x')).toMatchObject({ when: once('2026-03-29T01:30:00Z') })
})

test('what is meant does not depend on the zone of the process', () => {
  const zone = process.env.TZ
  try {
    for (const TZ of ['UTC', 'Europe/Berlin', 'America/New_York', 'Pacific/Apia', 'Australia/Lord_Howe']) {
      process.env.TZ = TZ
      expect(berlin('remind me tomorrow at 2:30 to x')).toMatchObject({ when: once('2026-03-29T01:30:00Z') })
      expect(berlin('remind me in 12 hours to x')).toMatchObject({ when: once('2026-03-29T01:00:00.500Z') })
      expect(process.env.TZ).toBe(TZ)
    }
  } finally {
    if (zone === undefined) delete process.env.TZ
    else process.env.TZ = zone
  }
})

test.each([
  ['every weekday at 9 remind me of the stand-up', cron('0 9 * * 1-5'), 'the stand-up'],
  ['at 9:15 every weekday remind me of the stand-up', cron('15 9 * * 1-5'), 'the stand-up'],
  ['remind me every weekday to stand up at 9', cron('0 9 * * 1-5'), 'stand up'],
  ['remind me every day at half past eight to read', cron('30 8 * * *'), 'read'],
  ['remind me daily at 8pm to read', cron('0 20 * * *'), 'read'],
  ['every morning tell me to smile', cron('0 9 * * *'), 'smile'],
  ['remind me every Monday, Wednesday and Friday at 18:30 to train', cron('30 18 * * 1,3,5'), 'train'],
  ['remind me on mondays and thursdays at 7 to put the bins out', cron('0 7 * * 1,4'), 'put the bins out'],
  ['every weekend at noon remind me to rest', cron('0 12 * * 0,6'), 'rest'],
  ['every friday evening remind me to log off', cron('0 20 * * 5'), 'log off'],
  ['remind me every week on tuesday at 10 to report', cron('0 10 * * 2'), 'report'],
  ['remind me every week to report', cron('0 9 * * 6'), 'report'],
  ['remind me on the 1st of every month to pay rent', cron('0 9 1 * *'), 'pay rent'],
  ['remind me every month on the last day at 17:00 to bill', cron('0 17 L * *'), 'bill'],
  ['every 5 minutes drink water', interval(300_000), 'drink water'],
  ['every five minutes remind me to drink', interval(300_000), 'drink'],
  ['remind me to drink every ninety seconds', interval(90_000), 'drink'],
  ['remind me hourly to stretch', interval(3_600_000), 'stretch'],
  ['remind me every other day to water the plants', interval(172_800_000), 'water the plants'],
])('“%s” is a reminder that comes again', (message, when, text) => {
  expect(berlin(message)).toEqual(remind(when, text))
})

test.each<[string, object]>([
  ['what are my reminders?', { kind: 'list' }],
  ['list tasks', { kind: 'list' }],
  ['Show me all scheduled tasks, please', { kind: 'list' }],
  ['pause task 3', { kind: 'pause', which: { id: '3' } }],
  ['resume reminder #3', { kind: 'resume', which: { id: '3' } }],
  ['cancel task number three', { kind: 'cancel', which: { id: '3' } }],
  ['please cancel 3', { kind: 'cancel', which: { id: '3' } }],
  ['delete the stretch reminder', { kind: 'cancel', which: { words: 'stretch' } }],
  ['cancel all my reminders', { kind: 'cancel', which: 'all' }],
  [
    'change task 3 to tomorrow at 10',
    { kind: 'change', which: { id: '3' }, when: once('2026-03-29T08:00:00Z') },
  ],
  ['move reminder 3 to every day at 8', { kind: 'change', which: { id: '3' }, when: cron('0 8 * * *') }],
  ['change task 3 to say water the plants', { kind: 'change', which: { id: '3' }, text: 'water the plants' }],
  [
    'change task 3 to every friday at 9 to water the plants',
    { kind: 'change', which: { id: '3' }, when: cron('0 9 * * 5'), text: 'water the plants' },
  ],
  ['remind me to stretch', { kind: 'no_time', text: 'stretch' }],
  ['in ten minutes', { kind: 'only_time', when: once('2026-03-28T13:10:00.500Z') }],
  ['help', { kind: 'help' }],
  ['', { kind: 'help' }],
  ['@Hatch', { kind: 'help' }],
  ['hello', { kind: 'greeting' }],
  ['what time is it?', { kind: 'clock' }],
  ['write me a poem about the sea', { kind: 'unknown' }],
  ['I saw him tomorrow', { kind: 'unknown' }],
  ['__proto__ 3', { kind: 'unknown' }],
  ['constructor', { kind: 'unknown' }],
])('“%s” is understood', (message, intent) => {
  expect(berlin(message)).toEqual(intent)
})

test.each<[string, object]>([
  [
    'Remember that my sister’s birthday is on 3 May.',
    { kind: 'remember', text: "my sister's birthday is on 3 May" },
  ],
  ['@Hatch please note that the code is 1234!', { kind: 'remember', text: 'the code is 1234' }],
  ['note: the boiler was serviced in June', { kind: 'remember', text: 'the boiler was serviced in June' }],
  ['note to self: buy a boat', { kind: 'remember', text: 'buy a boat' }],
  ['remember I like tea every morning at 9', { kind: 'remember', text: 'I like tea every morning at 9' }],
  ['remember that tasks are scheduled weekly', { kind: 'remember', text: 'tasks are scheduled weekly' }],
  ['What do you remember about Ann?', { kind: 'recall', about: 'Ann' }],
  ['what do you know about the boiler', { kind: 'recall', about: 'the boiler' }],
  ['what do you remember about the task list', { kind: 'recall', about: 'the task list' }],
  ['do you remember my sister?', { kind: 'recall', about: 'my sister' }],
  ['recall the code', { kind: 'recall', about: 'the code' }],
  ['what do you remember?', { kind: 'recall', about: '' }],
  ['show me all my notes', { kind: 'recall', about: '' }],
  ['forget the code', { kind: 'forget', what: 'the code' }],
  ['forget that the code is 1234', { kind: 'forget', what: 'the code is 1234' }],
  ['forget about the boiler', { kind: 'forget', what: 'the boiler' }],
  ['forget the stretch reminder', { kind: 'cancel', which: { words: 'stretch' } }],
  ['forget task 3', { kind: 'cancel', which: { id: '3' } }],
  ['forget it', { kind: 'never_mind' }],
  ['never mind', { kind: 'never_mind' }],
  ['todos', { kind: 'todos' }],
  ['list todos', { kind: 'todos' }],
  ['show me my to-do list, please', { kind: 'todos' }],
  ["what's on my list?", { kind: 'todos' }],
  ['what do I have to do?', { kind: 'todos' }],
  ['add milk and eggs to my list', { kind: 'add_todo', text: 'milk and eggs' }],
  ['put “call Ann” on the todo list', { kind: 'add_todo', text: '“call Ann”' }],
  ['add todo water the plants', { kind: 'add_todo', text: 'water the plants' }],
  ['add a todo: reply to Bo', { kind: 'add_todo', text: 'reply to Bo' }],
  ['add a reminder for tomorrow at noon to eat', remind(once('2026-03-29T10:00:00Z'), 'eat')],
  ['done milk', { kind: 'done', what: 'milk' }],
  ["I'm done with the dishes", { kind: 'done', what: 'dishes' }],
  ['complete todo 2', { kind: 'done', what: '2' }],
  ['tick off number 3', { kind: 'done', what: '3' }],
  ['mark the call to Ann as done', { kind: 'done', what: 'call to Ann' }],
  ['what is on my calendar today?', { kind: 'calendar', span: 'today' }],
  ["what's in my calendar tomorrow", { kind: 'calendar', span: 'tomorrow' }],
  ["tomorrow's agenda", { kind: 'calendar', span: 'tomorrow' }],
  ['show me my calendar for this week', { kind: 'calendar', span: 'week' }],
  ['calendar', { kind: 'calendar', span: 'week' }],
  ['remember to call Ann', { kind: 'unknown' }],
  ['list', { kind: 'list' }],
])('“%s” is meant for a service, or is not', (message, intent) => {
  expect(berlin(message)).toEqual(intent)
})

test.each([
  'forget everything',
  'forget',
  'remind me yesterday to stretch',
  'remind me every 2 days at 9 to water',
  'every day at 25:00 remind me to x',
  'remind me every 0 seconds to x',
  'remind me every ten minutes to drink until 5pm',
  'change task 3',
])('“%s” is answered with what is wrong with it', message => {
  expect(berlin(message)).toMatchObject({ kind: 'problem' })
})

test('no message, however odd, makes it fail', () => {
  const odd = [
    '((((',
    '\u0000',
    '@',
    'every',
    'every every day',
    'remind me',
    'at',
    'a'.repeat(100_000),
    `add ${'to my list '.repeat(150)}`,
    `what is on my ${'my '.repeat(600)}`,
    `list ${'all the my '.repeat(180)}`,
    '🕘 9',
    '\n\n',
  ]
  for (const message of odd) expect(berlin(message)).toHaveProperty('kind')
})
