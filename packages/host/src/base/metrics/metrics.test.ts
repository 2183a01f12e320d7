import { join } from 'node:path'
import { errorCodes } from '@hatchway/protocol'
import { post } from '@hatchway/spool'
import { expect, test } from 'vitest'
import { until } from '../../../../testing/src/until.ts'
import { createApi } from '../../api/app.ts'
import { openDaemon, send } from '../../api/testing.ts'
import { createContents } from './contents.ts'
import { createHistogram, createLatest } from './histogram.ts'
import { createMeter } from './meter.ts'
import { prometheusText } from './prometheus.ts'
import { createTraffic } from './traffic.ts'

test('a histogram counts each value below the bounds it does not exceed', () => {
  const histogram = createHistogram([1, 5, 10])
  for (const value of [0, 1, 1.1, 5, 9, 11, 1e9]) histogram.add(value)
  histogram.add(3, 10)
  expect(histogram.cumulative()).toEqual([2, 14, 15, 17])
  expect(histogram.sum()).toBe(0 + 1 + 1.1 + 5 + 9 + 11 + 1e9 + 30)
})

test('percentiles are of the latest values', () => {
  const latest = createLatest(100)
  expect(latest.percentiles(0.5)).toEqual([])
  for (let i = 1; i <= 1000; i++) latest.add(i)
  expect(latest.percentiles(0, 0.5, 0.99, 1)).toEqual([901, 951, 1000, 1000])
})

test('traffic is kept for an hour in steps of ten seconds, whatever the clock does', () => {
  const start = Date.UTC(2030, 0, 1)
  const traffic = createTraffic(start)
  traffic.add(start + 1, 3, 1)
  traffic.add(start + 9999, 1, 0)
  traffic.add(start + 25_000, 5, 5)
  expect(traffic.points(start + 30_000)).toEqual([
    { at: start, handled: 4, refused: 1 },
    { at: start + 10_000, handled: 0, refused: 0 },
    { at: start + 20_000, handled: 5, refused: 5 },
    { at: start + 30_000, handled: 0, refused: 0 },
  ])
  // Set back: it counts in the step that is open.
  traffic.add(start - 86_400_000, 1, 0)
  expect(traffic.points(start).at(-1)).toEqual({ at: start + 30_000, handled: 1, refused: 0 })
  traffic.add(start + 3_600_000, 7, 0)
  const points = traffic.points(start + 3_600_000)
  expect(points).toHaveLength(360)
  expect(points[0]?.at).toBe(start + 10_000)
  expect(points.reduce((sum, { handled }) => sum + handled, 0)).toBe(5 + 1 + 7)
  // Set far ahead: nothing old is shown as new.
  expect(traffic.points(start + 10 * 86_400_000).every(({ handled }) => handled === 0)).toBe(true)
})

test('the latest contents are kept, two thousand of them or eight megabytes', () => {
  const contents = createContents()
  for (let seq = 1; seq <= 5000; seq++) contents.keep(seq, `content ${seq}`)
  expect(contents.find(5000)).toBe('content 5000')
  expect(contents.find(5000 - 2047)).toBe('content 2953')
  expect(contents.find(5000 - 2048)).toBeUndefined()
  for (let seq = 6000; seq < 6020; seq++) contents.keep(seq, 'x'.repeat(1_000_000))
  expect(contents.find(5000)).toBeUndefined()
  expect([...Array(20).keys()].filter(i => contents.find(6000 + i) !== undefined)).toEqual([16, 17, 18, 19])
  contents.keep(7000, 'x'.repeat(2_000_000))
  expect(contents.find(7000)).toBeUndefined()
  expect(contents.find(6019)).toBeDefined()
  contents.keep(7001, '')
  expect(contents.find(7001)).toBe('')
})

test('a file’s own time, which may be any, does not spoil the figures', () => {
  const meter = createMeter(0)
  for (const waited of [-1e18, Number.NaN, 1e18, 5]) {
    meter.command({ seq: 1, group: 'g', receivedAt: 1 }, '', undefined, waited)
  }
  expect(meter.waited.sum()).toBe(86_400_005)
})

interface Family {
  type: string
  help: string
  samples: { name: string; labels: Record<string, string>; value: number }[]
}

/** Reads version 0.0.4 of the format, and takes nothing that is not of it. */
function parse(text: string): Map<string, Family> {
  expect(text.endsWith('\n')).toBe(true)
  const families = new Map<string, Family>()
  let current: Family | undefined
  let name = ''
  for (const line of text.trimEnd().split('\n')) {
    const about = /^# (HELP|TYPE) ([a-z_]+) (.+)$/.exec(line)
    if (about?.[1] === 'HELP') {
      name = about[2] ?? ''
      expect(families.has(name)).toBe(false)
      current = { type: '', help: about[3] ?? '', samples: [] }
      families.set(name, current)
      continue
    }
    if (about) {
      expect(about[2]).toBe(name)
      expect(['counter', 'gauge', 'histogram']).toContain(about[3])
      if (current) current.type = about[3] ?? ''
      continue
    }
    const label = /([a-z_]+)="((?:[^"\\]|\\[\\n"])*)"/.source
    const form = `^([a-z_]+)(?:\\{(${label}(?:,${label})*)\\})? (\\+Inf|NaN|-?[\\d.e+-]+)$`
    const sample = new RegExp(form).exec(line)
    const labels = [...(sample?.[2] ?? '').matchAll(new RegExp(label, 'g'))]
    expect([line, sample !== null]).toEqual([line, true])
    expect(sample?.[1]?.replace(/_(bucket|sum|count)$/, '')).toBe(name.replace(/_(bucket|sum|count)$/, ''))
    current?.samples.push({
      name: sample?.[1] ?? '',
      labels: Object.fromEntries(labels.map(([, key = '', value = '']) => [key, value])),
      value: Number(sample?.at(-1)),
    })
  }
  return families
}

test('what is scraped is Prometheus’ text, of what has happened, and no label has values without end', async () => {
  const { host, data, socket, port } = await openDaemon({ web: { metrics: 'yes' } })
  await host.addGroup({
    folder: 'family',
    jid: 'chat:1',
    name: 'Fam"ily\n\\',
    main: false,
    dialect: 'hatchway',
  })
  const say = (id: string, type: string) =>
    post(
      join(data, 'ipc', 'family', 'tasks'),
      JSON.stringify({ version: 1, id, type, payload: { text: 'hi' } }),
    )
  for (let i = 0; i < 20; i++) say(`m${i}`, 'send_message')
  for (let i = 0; i < 3; i++) say(`n${i}`, `nonsense"${i}\n`)
  await until('all is handled', () => host.status().handled === 23)
  const answer = await send({ socketPath: socket }, '/metrics')
  expect(answer.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8')
  const families = parse(answer.text)
  const value = (name: string, labels: Record<string, string> = {}) =>
    families
      .get(`hatchway_${name.replace(/_(bucket|sum|count)$/, '')}`)
      ?.samples.find(
        sample =>
          sample.name === `hatchway_${name}` && JSON.stringify(sample.labels) === JSON.stringify(labels),
      )?.value
  expect(value('commands_total')).toBe(23)
  expect(value('commands_refused_total', { code: 'unknown_type' })).toBe(3)
  expect(value('commands_refused_total', { code: 'forbidden' })).toBe(0)
  expect(value('groups')).toBe(1)
  expect(value('waiting', { kind: 'errors' })).toBe(3)
  expect(value('command_duration_seconds_count')).toBe(23)
  expect(value('command_wait_seconds_bucket', { le: '+Inf' })).toBe(23)
  expect(value('memory_bytes', { kind: 'resident' })).toBeGreaterThan(10_000_000)
  for (const [name, { type, help, samples }] of families) {
    expect([name, help !== '', samples.length > 0]).toEqual([name, true, true])
    if (type === 'counter') expect(name).toMatch(/_total$/)
    expect(samples.length).toBeLessThanOrEqual(Object.keys(errorCodes).length)
    if (type !== 'histogram') continue
    const buckets = samples.filter(sample => sample.name === `${name}_bucket`)
    const counts = buckets.map(sample => sample.value)
    expect(counts).toEqual(counts.toSorted((a, b) => a - b))
    expect(buckets.at(-1)?.labels).toEqual({ le: '+Inf' })
    expect(buckets.at(-1)?.value).toBe(samples.find(sample => sample.name === `${name}_count`)?.value)
  }
  expect(answer.text).not.toContain('family')
  expect((await send({ port }, '/metrics')).status).toBe(200)
})

test('channels that can lose their platform are shown, by name; where there are none, nothing is', () => {
  const gauges = {
    ...{ version: '1', startedAt: 0, groups: 0, sessions: [], waiting: { errors: 0 } },
    tasks: { active: 0, paused: 0 },
    usage: [],
  }
  expect([...parse(prometheusText(createMeter(0), { ...gauges, channels: [] })).keys()]).not.toContain(
    'hatchway_channel_connected',
  )
  const channels = [
    { name: 'slack', isConnected: true, isLimited: true },
    { name: 'irc', isConnected: false, isLimited: false },
  ]
  const families = parse(prometheusText(createMeter(0), { ...gauges, channels }))
  const valuesOf = (name: string) =>
    families.get(`hatchway_${name}`)?.samples.map(({ labels, value }) => [labels.channel, value])
  expect(valuesOf('channel_connected')).toEqual([
    ['slack', 1],
    ['irc', 0],
  ])
  expect(valuesOf('channel_limited')).toEqual([
    ['slack', 1],
    ['irc', 0],
  ])
})

test('to others figures are shown only where the configuration says so; health always, in one word', async () => {
  const { port, socket, host } = await openDaemon()
  expect((await send({ port }, '/metrics')).status).toBe(404)
  for (const where of [{ port }, { socketPath: socket }]) {
    for (const path of ['/healthz', '/readyz']) {
      const answer = await send(where, path, { headers: { host: 'probe.example' } })
      expect([path, answer.status, answer.text]).toEqual([path, 200, 'ok'])
    }
  }
  const answer = await createApi({ ...host, isReady: () => false }).request('/readyz')
  expect([answer.status, await answer.text()]).toEqual([503, 'not'])
})

test('what models used is shown by group and model, however many names of models an agent makes up', () => {
  const usage = Array.from({ length: 1000 }, (_, i) => ({
    ...{ group: 'main', model: `made-up-${i}"\n`, input: 1, cached: 0, output: 0, cost: undefined },
  }))
  const large = { group: 'main', model: 'claude', input: 500, cached: 100, output: 50, cost: 0.25 }
  const families = parse(
    prometheusText(createMeter(0), {
      ...{ version: '1', startedAt: 0, groups: 0, sessions: [], waiting: { errors: 0 } },
      tasks: { active: 0, paused: 0 },
      channels: [],
      usage: [...usage, large],
    }),
  )
  const tokens = families.get('hatchway_model_tokens_today')?.samples ?? []
  expect(tokens).toHaveLength(201 * 3)
  const inputOf = (model: string) =>
    tokens.find(({ labels }) => labels.model === model && labels.kind === 'input')?.value
  expect([inputOf('claude'), inputOf('(other)')]).toEqual([500, 801])
  expect(families.get('hatchway_model_cost_today')?.samples).toMatchObject([
    { labels: { group: 'main', model: 'claude' }, value: 0.25 },
  ])
})
