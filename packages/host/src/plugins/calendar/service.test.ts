import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import {
  isRadicaleMissing,
  passwordOf,
  type Radicale,
  startRadicale,
} from '../../../../testing/src/radicale.ts'
import type { ServiceContext } from '../../commands/service-tools.ts'
import { ServiceRefusal } from '../../services/define.ts'
import { createCalendarService } from './service.ts'
import { calendarsSchema } from './settings.ts'
import { object, ownZone, vevent } from './testing/objects.ts'

/** The tools against a real server: two people’s accounts, groups that may use one, both or none. */
const missing = isRadicaleMissing() ? 'radicale' : undefined
const attempt = missing === undefined || process.env.CI === 'true' ? test : test.skip
const named = (what: string) => (missing === undefined ? what : `${what} (without ${missing})`)

const timezone = 'Europe/Berlin'
const now = () => new Date('2026-07-01T10:00:00Z')
let radicale: Radicale

beforeAll(async () => {
  if (missing !== undefined && process.env.CI !== 'true') return
  radicale = await startRadicale(['anna', 'bert'])
})
afterAll(() => radicale?.stop())

interface Told {
  event_id: string
  series_id?: string
  title: string
  start: string
  end: string
  all_day: boolean
  [more: string]: unknown
}

const main = { folder: 'main', main: true }
const family = { folder: 'family', main: false }
const others = { folder: 'others', main: false }

/** A house with Anna’s account for main and Bert’s for the family, over calendars of this test alone. */
function house(changes: { accounts?: Record<string, object>; environment?: NodeJS.ProcessEnv } = {}) {
  const accounts = calendarsSchema.parse(
    changes.accounts ?? {
      anna: { url: radicale.url, username: 'anna', passwordVariable: 'ANNA' },
      bert: { url: radicale.url, username: 'bert', passwordVariable: 'BERT', groups: ['family'] },
    },
  )
  const environment = changes.environment ?? { ANNA: passwordOf('anna'), BERT: passwordOf('bert') }
  const service = createCalendarService({ accounts, environment, timezone, now })
  const call = async (
    tool: string,
    input: Record<string, unknown> = {},
    { group = main, signal = new AbortController().signal, requestId = randomUUID() } = {},
  ): Promise<Record<string, unknown>> => {
    const found = service.tools().find(({ name }) => name === tool)
    if (found?.kind !== 'later') throw new Error(`there is no ${tool}`)
    const checked = found.check(input)
    if (!checked.ok) throw new ServiceRefusal('invalid_field', checked.message)
    const context: ServiceContext = {
      group: { ...group, jid: `local:${group.folder}`, name: group.folder },
      ...{ requestId, signal, timezone, progress: () => {}, log: pino({ level: 'silent' }) },
    }
    const answer = await found.call(checked.input, context)
    return JSON.parse(JSON.stringify(answer))
  }
  const events = async (input: Record<string, unknown>, options = {}): Promise<Told[]> => {
    const { events } = await call('list_calendar', input, options)
    return events as Told[]
  }
  /** the code and the words of a refusal */
  const refusal = async (...parameters: Parameters<typeof call>) => {
    const error = await call(...parameters).then(
      answer => new Error(`it was not refused: ${JSON.stringify(answer)}`),
      (reason: unknown) => reason,
    )
    if (!(error instanceof ServiceRefusal)) throw error
    expect(error.message).not.toContain(passwordOf('anna'))
    expect(error.message).not.toContain(radicale.url)
    return `${error.code}: ${error.message}`
  }
  return { service, call, events, refusal }
}

/** A new calendar with these objects, by a name that nothing else has. */
async function calendarWith(objects: Record<string, string> = {}, user = 'anna'): Promise<string> {
  const name = `c-${randomUUID()}`
  await radicale.makeCalendar(user, name)
  for (const [object, text] of Object.entries(objects))
    await radicale.put(user, name, object, text.replaceAll('UID:one', `UID:${object}`))
  return name
}

const brief = (events: readonly Told[]) => events.map(({ title, start, end }) => `${start}/${end} ${title}`)

test('without an account there are no tools', () => {
  expect(createCalendarService({ accounts: {}, environment: {}, timezone, now }).tools()).toEqual([])
})

test('accounts are for main alone where nothing else is said, and hold no secrets', () => {
  const account = { url: 'https://dav.example.org/', username: 'anna', passwordVariable: 'ANNA' }
  const parsed = calendarsSchema.safeParse({ home: account })
  expect(parsed.data).toEqual({ home: { ...account, groups: 'main', readonly: false } })
  const wrong = [
    { ...account, url: 'https://anna:secret@dav.example.org/' },
    { ...account, url: 'file:///etc/passwd' },
    { ...account, username: 'anna:secret' },
    { ...account, passwordVariable: 'my secret' },
    { ...account, password: 'secret' },
    { ...account, groups: ['../main'] },
  ]
  for (const one of wrong) expect(calendarsSchema.safeParse({ home: one }).success).toBe(false)
  expect(calendarsSchema.safeParse({ 'a/b': account }).success).toBe(false)
  const seenBy = (...groups: unknown[]) => {
    const accounts = calendarsSchema.parse(
      Object.fromEntries(groups.map((one, index) => [`a${index}`, { ...account, groups: one }])),
    )
    return createCalendarService({ accounts, environment: {}, timezone, now }).tools()[0]?.groups
  }
  expect(seenBy('main', 'main')).toBe('main')
  expect(seenBy(['a', 'b'], ['b'])).toEqual(['a', 'b'])
  expect(seenBy('main', ['a'])).toBe('all')
  expect(seenBy('main', 'all')).toBe('all')
})

attempt(
  named('what is on the server is told: zones, whole days, series, and what reaches into the range'),
  async () => {
    const calendar = await calendarWith({
      'utc.ics': object(
        vevent('DTSTART:20260702T070000Z', 'DTEND:20260702T080000Z', 'SUMMARY:UTC', 'LOCATION:Here\\, there'),
      ),
      'berlin.ics': object(
        vevent(
          'DTSTART;TZID=Europe/Berlin:20260702T100000',
          'DURATION:PT1H',
          'SUMMARY:No description of its zone',
        ),
      ),
      'own.ics': object(
        ownZone('Own'),
        vevent('DTSTART;TZID=Own:20260702T110000', 'DURATION:PT1H', 'SUMMARY:Own zone'),
      ),
      'floating.ics': object(vevent('DTSTART:20260702T120000', 'DURATION:PT1H', 'SUMMARY:Floating')),
      'days.ics': object(
        vevent('DTSTART;VALUE=DATE:20260630', 'DTEND;VALUE=DATE:20260704', 'SUMMARY:Holiday'),
      ),
      'last.ics': object(vevent('DTSTART;VALUE=DATE:20260708', 'SUMMARY:Last day')),
      'after.ics': object(vevent('DTSTART;VALUE=DATE:20260709', 'SUMMARY:Day after')),
      'night.ics': object(vevent('DTSTART:20260630T200000Z', 'DTEND:20260701T040000Z', 'SUMMARY:Night')),
      'series.ics': object(
        ownZone('Europe/Berlin'),
        vevent(
          'DTSTART;TZID=Europe/Berlin:20250104T080000',
          'DURATION:PT15M',
          'RRULE:FREQ=WEEKLY;BYDAY=FR,SA',
          'EXDATE;TZID=Europe/Berlin:20260703T080000',
          'SUMMARY:Paper',
        ),
        vevent(
          'RECURRENCE-ID;TZID=Europe/Berlin:20260704T080000',
          'DTSTART;TZID=Europe/Berlin:20260705T090000',
          'DURATION:PT15M',
          'SUMMARY:Paper on Sunday',
        ),
      ),
      'todo.ics': object(
        [
          'BEGIN:VTODO',
          'UID:todo',
          'DTSTAMP:20260101T000000Z',
          'DUE:20260702T100000Z',
          'SUMMARY:Todo',
          'END:VTODO',
        ].join('\r\n'),
      ),
    })
    const { call, events } = house()
    const told = await events({ calendar, start_date: null, end_date: null })
    expect(brief(told)).toEqual([
      '2026-06-30/2026-07-03 Holiday',
      '2026-06-30T22:00:00+02:00/2026-07-01T06:00:00+02:00 Night',
      '2026-07-02T09:00:00+02:00/2026-07-02T10:00:00+02:00 UTC',
      '2026-07-02T10:00:00+02:00/2026-07-02T11:00:00+02:00 No description of its zone',
      '2026-07-02T11:00:00+02:00/2026-07-02T12:00:00+02:00 Own zone',
      '2026-07-02T12:00:00+02:00/2026-07-02T13:00:00+02:00 Floating',
      '2026-07-05T09:00:00+02:00/2026-07-05T09:15:00+02:00 Paper on Sunday',
      '2026-07-08/2026-07-08 Last day',
    ])
    expect(told[2]).toMatchObject({ all_day: false, location: 'Here, there' })
    expect(told[0]).toMatchObject({ all_day: true })
    expect(await call('list_calendar', { calendar })).toMatchObject({
      ...{ calendar, timezone, start: '2026-07-01T00:00:00+02:00', end: '2026-07-09T00:00:00+02:00' },
    })
    expect(brief(await events({ calendar, start_date: '2026-03-28', end_date: '2026-04-03' }))).toEqual([
      '2026-03-28T08:00:00+01:00/2026-03-28T08:15:00+01:00 Paper',
      '2026-04-03T08:00:00+02:00/2026-04-03T08:15:00+02:00 Paper',
    ])
    const exact = { calendar, start_date: '2026-07-02T09:30:00', end_date: '2026-07-02T08:10:00Z' }
    expect(brief(await events(exact)).map(line => line.slice(-20))).toEqual(
      ['Holiday', 'UTC', 'No description of its zone'].map(title =>
        expect.stringContaining(title.slice(-15)),
      ),
    )
  },
)

attempt(
  named(
    'what repeats without end is told up to a limit, with where to go on, and what cannot be read is named',
  ),
  async () => {
    const calendar = await calendarWith({
      'minutes.ics': object(
        vevent('DTSTART:20260630T220000Z', 'RRULE:FREQ=MINUTELY;COUNT=2000', 'SUMMARY:Beat'),
      ),
      'weeks.ics': object(
        vevent('DTSTART:20260702T220000Z', 'RRULE:FREQ=YEARLY;BYWEEKNO=27', 'SUMMARY:Week 27'),
      ),
    })
    const { call } = house()
    const first = await call('list_calendar', { calendar })
    expect(first).toMatchObject({
      ...{ more: true, next_start: '2026-07-01T08:20:00+02:00', unreadable_count: 1 },
      unreadable: [{ title: 'Week 27', reason: expect.stringContaining('weeks of the year') }],
    })
    expect(first.events).toHaveLength(500)
    const rest = await call('list_calendar', { calendar, start_date: first.next_start })
    expect((rest.events as Told[])[0]).toMatchObject({ start: '2026-07-01T08:20:00+02:00' })
  },
)

attempt(named('ranges that cannot be meant are refused'), async () => {
  const { refusal } = house()
  const range = (start_date: string, end_date?: string) => refusal('list_calendar', { start_date, end_date })
  expect(await range('2026-07-02', '2026-07-01')).toMatch(/^invalid_field: end_date: must not lie before/)
  expect(await range('2026-01-01', '2027-06-01')).toMatch(
    /^invalid_field: end_date: may lie at most 366 days/,
  )
  expect(await range('2026-02-30')).toMatch(/^invalid_field: start_date: there is no such date/)
  expect(await range('tomorrow')).toMatch(/^invalid_field: start_date: must be a date such as/)
  expect(await range('9999-12-31')).toMatch(/^invalid_field: start_date: must lie between/)
})

attempt(named('a group sees the accounts it may use, and nothing of any other'), async () => {
  const [annas, berts] = [await calendarWith(), await calendarWith({}, 'bert')]
  const { call, refusal } = house()
  const names = async (group: typeof main) =>
    ((await call('list_calendars', {}, { group })).calendars as { name: string }[]).map(({ name }) => name)
  expect(await names(main)).toContain(annas)
  expect(await names(main)).not.toContain(berts)
  expect(await names(family)).toContain(berts)
  expect(await names(family)).not.toContain(annas)
  expect(await names(others)).toEqual([])
  for (const calendar of [annas, `anna/${annas}`]) {
    expect(await refusal('list_calendar', { calendar }, { group: family })).toMatch(
      /^not_found: There is no calendar/,
    )
    expect(await refusal('list_calendar', { calendar }, { group: others })).toBe(
      'not_found: There is no calendar of this name. There are none for this group.',
    )
    const event = { calendar, title: 'x', start: '2026-07-02', end: '2026-07-02' }
    expect(await refusal('create_event', event, { group: family })).toMatch(/^not_found/)
  }
  const { event_id } = await call('create_event', {
    calendar: annas,
    title: 'Secret',
    start: '2026-07-02',
    end: '2026-07-02',
  })
  expect(await refusal('delete_event', { event_id }, { group: family })).toMatch(/^not_found/)
  expect(await refusal('delete_event', { event_id, calendar: berts }, { group: family })).toMatch(
    /^not_found: The event is not in/,
  )
  expect(await radicale.list('anna', annas)).toHaveLength(1)
})

attempt(
  named('calendars of one name are told apart by their account, and asked for by any clear name'),
  async () => {
    const title = `Team ${randomUUID()}`
    const [one, two] = [randomUUID(), randomUUID()]
    await radicale.makeCalendar('anna', one, title)
    await radicale.makeCalendar('bert', two, title)
    await radicale.makeCalendar('bert', randomUUID(), `anna/${title}`)
    const account = (username: string) => ({
      url: radicale.url,
      username,
      passwordVariable: username.toUpperCase(),
    })
    const { call, refusal } = house({ accounts: { anna: account('anna'), bert: account('bert') } })
    const names = ((await call('list_calendars')).calendars as { name: string }[]).map(({ name }) => name)
    expect(names.filter(name => name.includes(title))).toEqual([
      `anna/${title}`,
      `bert/anna/${title}`,
      `bert/${title}`,
    ])
    expect(await refusal('list_calendar', { calendar: title })).toMatch(
      /^invalid_field: calendar: several are called so/,
    )
    await call('create_event', {
      calendar: `anna/${title}`,
      title: 'Anna’s',
      start: '2026-07-02',
      end: '2026-07-02',
    })
    await call('create_event', {
      calendar: `BERT/${title}`,
      title: 'Bert’s',
      start: '2026-07-02',
      end: '2026-07-02',
    })
    expect(await radicale.list('anna', one)).toHaveLength(1)
    expect(await radicale.list('bert', two)).toHaveLength(1)
  },
)

attempt(
  named('without a name it is the only calendar or the primary one, as unchanged containers ask for it'),
  async () => {
    const [first, second] = [await calendarWith(), await calendarWith()]
    const account = { url: radicale.url, username: 'anna', passwordVariable: 'ANNA' }
    const only = house({ accounts: { anna: { ...account, calendars: [second] } } })
    expect(await only.call('list_calendar')).toMatchObject({ calendar: second })
    expect(await only.call('list_calendar', { calendar: 'primary' })).toMatchObject({ calendar: second })
    expect(await only.refusal('list_calendar', { calendar: first })).toMatch(/^not_found/)
    const both = house({ accounts: { anna: { ...account, calendars: [second, first] } } })
    expect(await both.call('list_calendar', { calendar: '' })).toMatchObject({ calendar: second })
    const many = house()
    expect(await many.refusal('list_calendar')).toMatch(
      /^invalid_field: calendar: say which one\. There are “/,
    )
  },
)

attempt(named('an event that is created is the same when it is read, whatever its words are'), async () => {
  const calendar = await calendarWith()
  const { call, events } = house()
  const nasty = 'Tea, biscuits; \\n and "more" 🫖 '.repeat(6).trim()
  await call('create_event', {
    ...{ calendar, title: nasty, start: '2026-07-02T09:00', end: '2026-07-02T08:30:00Z' },
    ...{ description: 'First\r\nsecond: line', location: 'BEGIN:VALARM' },
  })
  await call('create_event', { calendar, title: 'Days', start: '2026-07-03', end: '2026-07-05' })
  await call('create_event', {
    calendar,
    title: 'Offset',
    start: '2026-07-06T09:00:00-04:00',
    end: '2026-07-06T18:00:00',
  })
  const told = await events({ calendar })
  expect(brief(told)).toEqual([
    `2026-07-02T09:00:00+02:00/2026-07-02T10:30:00+02:00 ${nasty}`,
    '2026-07-03/2026-07-05 Days',
    '2026-07-06T15:00:00+02:00/2026-07-06T18:00:00+02:00 Offset',
  ])
  expect(told[0]).toMatchObject({ description: 'First\nsecond: line', location: 'BEGIN:VALARM' })
  for (const name of await radicale.list('anna', calendar)) {
    const text = (await radicale.get('anna', calendar, name)) ?? ''
    for (const line of text.split('\r\n')) expect(Buffer.byteLength(line)).toBeLessThanOrEqual(75)
  }
})

attempt(named('no text becomes a property of its own'), async () => {
  const calendar = await calendarWith()
  const { call, events } = house()
  const ends = ['\r', '\n', '\r\n', '\u0085', '\u2028', '\u2029', '\u000b', '\u000c', '\u001c', '\u0000']
  const injected = ends.map(end => `x${end}ATTENDEE:mailto:eve@example.org`).join('')
  const text = { title: injected, location: injected, description: injected }
  await call('create_event', { calendar, ...text, start: '2026-07-02', end: '2026-07-02' })
  const [name = ''] = await radicale.list('anna', calendar)
  const stored = ((await radicale.get('anna', calendar, name)) ?? '').replaceAll('\r\n ', '')
  // As the server itself takes lines apart, which is written in Python.
  for (const line of stored.split(/[\p{Cc}\u2028\u2029]+/u))
    expect(line).toMatch(
      /^(BEGIN|END|VERSION|PRODID|UID|DTSTAMP|DTSTART|DTEND|SUMMARY|LOCATION|DESCRIPTION|X-|$)/,
    )
  expect(await events({ calendar })).toHaveLength(1)
})

attempt(
  named('asked again after a crash, an event is there once; another request makes another'),
  async () => {
    const calendar = await calendarWith()
    const { call } = house()
    const event = { calendar, title: 'Once', start: '2026-07-02T09:00', end: '2026-07-02T10:00' }
    const requestId = randomUUID()
    const first = await call('create_event', event, { requestId })
    const second = await house().call('create_event', event, { requestId })
    expect(first).toMatchObject({ created: true, title: 'Once' })
    expect(second).toEqual({ ...first, existed_already: true })
    expect(await radicale.list('anna', calendar)).toHaveLength(1)
    await Promise.all([
      call('create_event', event, { requestId }),
      call('create_event', event, { requestId }),
    ])
    expect(await radicale.list('anna', calendar)).toHaveLength(1)
    await call('create_event', event)
    await call('create_event', { ...event, title: 'Another under the same id' }, { requestId })
    expect(await radicale.list('anna', calendar)).toHaveLength(3)
    const groups = house({
      accounts: { anna: { url: radicale.url, username: 'anna', passwordVariable: 'ANNA', groups: 'all' } },
    })
    await groups.call('create_event', event, { requestId, group: family })
    expect(await radicale.list('anna', calendar)).toHaveLength(4)
  },
)

attempt(named('events that cannot be meant are refused before anybody is asked'), async () => {
  const { refusal } = house({
    accounts: { anna: { url: 'http://127.0.0.1:1/', username: 'a', passwordVariable: 'ANNA' } },
  })
  const create = (start: string, end: string, title = 'x') => refusal('create_event', { title, start, end })
  expect(await create('2026-07-02T10:00', '2026-07-02T09:00')).toBe(
    'invalid_field: end: must be later than start',
  )
  expect(await create('2026-07-02T10:00', '2026-07-02T10:00')).toBe(
    'invalid_field: end: must be later than start',
  )
  expect(await create('2026-07-02', '2026-07-01')).toBe('invalid_field: end: must not lie before start')
  expect(await create('2026-07-02', '2026-07-02T10:00')).toMatch(
    /^invalid_field: end: must be a date if start is one/,
  )
  expect(await create('2026-07-02', '2030-07-02')).toMatch(/^invalid_field: end: may lie at most 366 days/)
  expect(await create('2026-07-02T10:00', '2026-07-02T25:00')).toMatch(
    /^invalid_field: end: there is no such/,
  )
  expect(await create('2026-07-02', '2026-07-02', ' ')).toMatch(/^invalid_field: title/)
  expect(await refusal('delete_event', { event_id: 'x' })).toBe(
    'invalid_field: event_id: is not one that list_calendar gave',
  )
})

attempt(named('an event is deleted as it was listed, once; one that was changed since is not'), async () => {
  const calendar = await calendarWith({
    'a%40b.ics': object(vevent('DTSTART:20260702T070000Z', 'SUMMARY:a')),
    'b.ics': object(vevent('DTSTART:20260703T070000Z', 'SUMMARY:b')),
  })
  const { call, events, refusal } = house()
  const [a, b] = await events({ calendar })
  expect(await call('delete_event', { event_id: a?.event_id, calendar })).toMatchObject({ deleted: true })
  expect(await radicale.list('anna', calendar)).toEqual(['b.ics'])
  expect(await refusal('delete_event', { event_id: a?.event_id, calendar })).toMatch(
    /^not_found: There is no such event/,
  )
  await radicale.put(
    'anna',
    calendar,
    'b.ics',
    object(vevent('DTSTART:20260703T070000Z', 'SUMMARY:B!')).replace('UID:one', 'UID:b.ics'),
  )
  expect(await refusal('delete_event', { event_id: b?.event_id, calendar: 'primary' })).toMatch(
    /^conflict: The event has been changed/,
  )
  expect(await radicale.list('anna', calendar)).toEqual(['b.ics'])
  const [again] = await events({ calendar })
  await call('delete_event', { event_id: again?.event_id })
  expect(await radicale.list('anna', calendar)).toEqual([])
})

attempt(
  named('single times of a series are called off, the rest stays, and the series goes as a whole'),
  async () => {
    const calendar = await calendarWith({
      'zone.ics': object(
        ownZone('Own'),
        vevent(
          'DTSTART;TZID=Own:20260701T090000',
          'DURATION:PT1H',
          'RRULE:FREQ=DAILY;COUNT=5',
          'SUMMARY:zone',
          'X-KEPT:yes',
        ),
        vevent(
          'RECURRENCE-ID;TZID=Own:20260703T090000',
          'DTSTART;TZID=Own:20260703T200000',
          'DURATION:PT1H',
          'SUMMARY:moved',
        ),
      ),
      'utc.ics': object(vevent('DTSTART:20260701T100000Z', 'RRULE:FREQ=DAILY;COUNT=3', 'SUMMARY:utc')),
      'days.ics': object(vevent('DTSTART;VALUE=DATE:20260701', 'RRULE:FREQ=DAILY;COUNT=3', 'SUMMARY:days')),
    })
    const { call, events, refusal } = house()
    const before = await events({ calendar })
    expect(before).toHaveLength(11)
    const find = (title: string, start: string) =>
      before.find(event => event.title === title && event.start.startsWith(start))
    // All of one listing: what is changed in the series is no conflict for its other times.
    for (const [title, start] of [
      ['zone', '2026-07-02'],
      ['moved', '2026-07-03'],
      ['utc', '2026-07-02'],
      ['days', '2026-07-01'],
    ] as const) {
      const event_id = find(title, start)?.event_id
      expect(await call('delete_event', { event_id, calendar })).toMatchObject({ deleted: true, title })
      expect(await refusal('delete_event', { event_id, calendar })).toMatch(/^not_found/)
    }
    expect(
      brief(await events({ calendar })).map(line => `${line.slice(0, 10)} ${line.split(' ')[1]}`),
    ).toEqual([
      '2026-07-01 zone',
      '2026-07-01 utc',
      '2026-07-02 days',
      '2026-07-03 days',
      '2026-07-03 utc',
      '2026-07-04 zone',
      '2026-07-05 zone',
    ])
    const stored = await radicale.get('anna', calendar, 'zone.ics')
    expect(stored).toContain('EXDATE;TZID=Own:20260702T090000')
    expect(stored).toContain('X-KEPT:yes')
    expect(stored).toContain('BEGIN:VTIMEZONE')
    expect(await radicale.get('anna', calendar, 'utc.ics')).toContain('EXDATE:20260702T100000Z')
    expect(await radicale.get('anna', calendar, 'days.ics')).toContain('EXDATE;VALUE=DATE:20260701')

    const stale = find('zone', '2026-07-04')?.series_id
    expect(await refusal('delete_event', { event_id: stale, calendar })).toMatch(/^conflict/)
    const fresh = (await events({ calendar })).find(({ title }) => title === 'zone')
    expect(await call('delete_event', { event_id: fresh?.series_id, calendar })).toMatchObject({
      deleted: true,
    })
    expect(await radicale.list('anna', calendar)).not.toContain('zone.ics')
  },
)

attempt(named('a time of a series that was moved since it was listed is not called off'), async () => {
  const master = vevent('DTSTART:20260702T070000Z', 'RRULE:FREQ=DAILY;COUNT=3', 'SUMMARY:a')
  const calendar = await calendarWith({ 'a.ics': object(master) })
  const { events, refusal } = house()
  const [, second] = await events({ calendar })
  const moved = vevent('RECURRENCE-ID:20260703T070000Z', 'DTSTART:20260703T150000Z', 'SUMMARY:a')
  await radicale.put('anna', calendar, 'a.ics', object(master, moved).replaceAll('UID:one', 'UID:a.ics'))
  expect(await refusal('delete_event', { event_id: second?.event_id, calendar })).toMatch(/^conflict/)
})

attempt(named('an id leads to nothing outside the calendar it was listed in'), async () => {
  const hidden = await calendarWith({ 'secret.ics': object(vevent('DTSTART:20260702T070000Z', 'SUMMARY:a')) })
  const shown = await calendarWith({ 'mine.ics': object(vevent('DTSTART:20260702T070000Z', 'SUMMARY:b')) })
  const { events, refusal } = house({
    accounts: { anna: { url: radicale.url, username: 'anna', passwordVariable: 'ANNA', calendars: [shown] } },
  })
  const [event] = await events({})
  const contents: unknown[] = JSON.parse(Buffer.from(event?.event_id ?? '', 'base64url').toString())
  const forged = (object: string) =>
    Buffer.from(JSON.stringify(contents.with(2, object))).toString('base64url')
  const names = [
    `../${hidden}/secret.ics`,
    `..%2f${hidden}%2fsecret.ics`,
    `%2e%2e%2f${hidden}%2fsecret.ics`,
    `/anna/${hidden}/secret.ics`,
    `${radicale.url}anna/${hidden}/secret.ics`,
    'http://127.0.0.1:1/',
    '.',
    '',
  ]
  for (const name of names) {
    expect(await refusal('delete_event', { event_id: forged(name) }), name).toMatch(
      /^invalid_field: event_id/,
    )
  }
  expect(await radicale.list('anna', hidden)).toEqual(['secret.ics'])
  // The calendar itself is no event either: nothing that is not inside is ever asked for.
  expect(await refusal('delete_event', { event_id: forged('other.ics') })).toMatch(/^not_found/)
})

attempt(named('a calendar that can only be read is only read'), async () => {
  const calendar = await calendarWith({ 'a.ics': object(vevent('DTSTART:20260702T070000Z', 'SUMMARY:a')) })
  const { call, events, refusal } = house({
    accounts: { anna: { url: radicale.url, username: 'anna', passwordVariable: 'ANNA', readonly: true } },
  })
  const { calendars } = await call('list_calendars')
  expect(calendars).toContainEqual({ name: calendar, account: 'anna', readonly: true, primary: false })
  const [event] = await events({ calendar })
  expect(await refusal('delete_event', { event_id: event?.event_id })).toMatch(
    /^forbidden: .* can only be read/,
  )
  const create = { calendar, title: 'x', start: '2026-07-02', end: '2026-07-02' }
  expect(await refusal('create_event', create)).toMatch(/^forbidden/)
})

attempt(
  named('a wrong password and a missing one are said to be so, and other accounts work on'),
  async () => {
    const calendar = await calendarWith()
    const bert = { url: radicale.url, username: 'bert', passwordVariable: 'BERT' }
    const anna = { url: radicale.url, username: 'anna', passwordVariable: 'ANNA' }
    const wrong = house({ accounts: { bert }, environment: { BERT: 'wrong' } })
    expect(await wrong.refusal('list_calendars')).toMatch(
      /^service_failed: .* refuses the user name or the password/,
    )
    expect(wrong.service.state?.()).toMatchObject({ ok: false, text: expect.stringContaining('“bert”') })
    const none = house({ accounts: { bert }, environment: {} })
    expect(none.service.state?.()).toMatchObject({ ok: false, text: expect.stringContaining('set BERT') })
    expect(await none.refusal('list_calendar', { calendar: 'x' })).toMatch(/^unavailable: .* has no password/)
    const half = house({ accounts: { bert, anna }, environment: { ANNA: passwordOf('anna'), BERT: 'wrong' } })
    const listed = await half.call('list_calendars')
    expect(listed.problems).toMatchObject([{ account: 'bert' }])
    expect(await half.call('list_calendar', { calendar })).toMatchObject({ events: [] })
    expect(await half.refusal('list_calendar', { calendar: 'x' })).toMatch(
      /^not_found: .* Besides, not all could be asked/,
    )
  },
)

attempt(
  named('a server that stops in the middle fails clearly, and works again when it is back'),
  async () => {
    const calendar = await calendarWith()
    const { call, refusal } = house()
    const unreachable = /^service_failed: .* cannot be reached \([A-Z_]+\)/
    await call('list_calendar', { calendar })
    radicale.pause()
    const asked = refusal('list_calendar', { calendar })
    await radicale.kill()
    expect(await asked).toMatch(unreachable)
    expect(await refusal('list_calendar', { calendar })).toMatch(unreachable)
    await radicale.begin()
    expect(await call('list_calendar', { calendar })).toMatchObject({ events: [] })
  },
)

attempt(named('a request to a server that does not answer is called off at once'), async () => {
  const { call } = house()
  radicale.pause()
  try {
    const abort = new AbortController()
    const asked = call('list_calendars', {}, { signal: abort.signal })
    const expected = expect(asked).rejects.toThrow('taken back')
    setTimeout(() => abort.abort(new Error('taken back')), 50)
    await expected
    await expect(
      call('list_calendars', {}, { signal: AbortSignal.abort(new Error('too late')) }),
    ).rejects.toThrow('too late')
  } finally {
    radicale.goOn()
  }
})

attempt(
  named(
    'of a series that is called off time by time, all at once, what is said to be deleted is and nothing else',
  ),
  async () => {
    const calendar = await calendarWith({
      'a.ics': object(vevent('DTSTART:20260702T070000Z', 'RRULE:FREQ=DAILY;COUNT=9')),
    })
    const { call, events } = house()
    const listed = await events({ calendar })
    const results = await Promise.allSettled(
      listed.map(({ event_id }) => call('delete_event', { event_id, calendar })),
    )
    const done = results.filter(({ status }) => status === 'fulfilled')
    for (const result of results)
      if (result.status === 'rejected') expect(result.reason).toMatchObject({ code: 'conflict' })
    expect(done.length).toBeGreaterThan(0)
    expect(await events({ calendar })).toHaveLength(listed.length - done.length)
  },
)

/** A way to the server on which something happens before what changes an event gets there. */
async function wayWith(before: () => Promise<void>): Promise<string> {
  const way = createServer(async (request, response) => {
    if (request.headers['if-match'] !== undefined) await before()
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const passed = (entries: Iterable<[string, unknown]>) =>
      [...entries].flatMap(([name, value]): [string, string][] =>
        onlyHere.has(name) ? [] : [[name, String(value)]],
      )
    const answer = await fetch(new URL(request.url ?? '', radicale.url), {
      method: request.method ?? 'GET',
      headers: passed(Object.entries(request.headers)),
      ...(chunks.length > 0 ? { body: Buffer.concat(chunks) } : {}),
    })
    const body = Buffer.from(await answer.arrayBuffer())
    response.writeHead(answer.status, Object.fromEntries(passed(answer.headers))).end(body)
  })
  await new Promise<void>(resolve => way.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    way.closeAllConnections()
    way.close()
  })
  return `http://127.0.0.1:${(way.address() as AddressInfo).port}/`
}

const onlyHere = new Set(['host', 'connection', 'content-length', 'content-encoding', 'transfer-encoding'])

attempt(named('what somebody changes in the last moment is not deleted, nor overwritten'), async () => {
  const single = (title: string) => object(vevent('DTSTART:20260702T070000Z', `SUMMARY:${title}`))
  const series = (title: string) =>
    object(vevent('DTSTART:20260703T070000Z', 'RRULE:FREQ=DAILY;COUNT=3', `SUMMARY:${title}`))
  const calendar = await calendarWith({ 'a.ics': single('a'), 'b.ics': series('b') })
  const change = async () => {
    await radicale.put('anna', calendar, 'a.ics', single('changed').replace('UID:one', 'UID:a.ics'))
    await radicale.put('anna', calendar, 'b.ics', series('changed').replace('UID:one', 'UID:b.ics'))
  }
  const url = await wayWith(change)
  const { events, refusal } = house({
    accounts: { anna: { url, username: 'anna', passwordVariable: 'ANNA' } },
  })
  const [a, b] = await events({ calendar })
  for (const event_id of [a?.event_id, b?.event_id, b?.series_id]) {
    await radicale.put('anna', calendar, 'a.ics', single('a').replace('UID:one', 'UID:a.ics'))
    await radicale.put('anna', calendar, 'b.ics', series('b').replace('UID:one', 'UID:b.ics'))
    expect(await refusal('delete_event', { event_id, calendar })).toMatch(/^conflict: It has been changed/)
  }
  for (const name of ['a.ics', 'b.ics']) {
    const text = await radicale.get('anna', calendar, name)
    expect(text).toContain('SUMMARY:changed')
    expect(text).not.toContain('EXDATE')
  }
})
