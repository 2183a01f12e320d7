import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Finding } from '../report.ts'
import { assetsBeside, differences, intrusions } from './assets.ts'
import { filesWith } from './canary.ts'
import type { Line } from './inside/ledger.ts'
import { judge } from './journal.ts'
import type { watchResourceUsage } from './resource-usage.ts'
import type { Rounds } from './rounds.ts'
import { evil, modelKey, type Testbed } from './testbed.ts'
import type { Phase, Testimony } from './witness.ts'

/**
 * Bounds by measurement on a machine of two cores. The sandbox may use both of them as well (`agents.cpus` is 2 where
 * nobody says otherwise), so that a request of another group, which takes about a millisecond without an attack, waits
 * for its share of them; a single stall of a busy machine is no finding either. What would be wrong is one that waits
 * behind the hostile group's files: that is seconds.
 */
const bounds = {
  p50: { mostly: 8, worst: 30, ms: 100 },
  p99: { mostly: 15, worst: 60, ms: 1000 },
  /** of the daemon with everything it keeps, at its largest */
  mostMb: 512,
  /** from the second quarter of the attack to the last */
  growth: 1.3,
}

export interface Observed {
  sandbox: string
  waves: readonly (readonly string[])[]
  testbed: Testbed
  marker: string
  secret: string
  log: string
  lines: readonly Line[]
  rounds: Rounds
  testimony: Testimony
  usage: ReturnType<typeof watchResourceUsage>
  ended: string | undefined
  screens: Record<string, string>
  touched: readonly string[]
  unhandled: readonly string[]
  again: string | undefined
  audit: string
  newProblems: readonly string[]
  leftovers: readonly string[]
  progress(text: string): void
}

/** What must not come to a terminal: anything that moves, hides or turns round what is beside it. */
const raw = /[^\P{Cc}\n]|[\u200b\u202a-\u202e\u2060\u2066-\u2069\ufeff]/u
/** What other groups say here. */
const saidByOthers = /^w\d+ was here$|^I am good$|Tea\?/

/** of the other group, in which nobody attacks */
const quietPhases: readonly string[] = ['warm-up', 'quiet', 'afterwards', 'last']

const sum = (numbers: readonly number[]) => numbers.reduce((all, one) => all + one, 0)

/** The daemon has ended; its store can be read. */
export function findingsOf(observed: Observed): Finding[] {
  const { testbed, lines, rounds, testimony, usage, log, marker, screens } = observed
  const { layout, canaries, provider, decoy } = testbed
  const findings: Finding[] = []
  const see = (what: string, seen: string, bound: string, ok: boolean) =>
    void findings.push({ what: `${observed.sandbox}: ${what}`, seen, bound, ok })
  const none = (what: string, problems: readonly string[], fine: string, bound: string) => {
    for (const problem of problems.slice(0, 20)) observed.progress(`WRONG, ${what}: ${problem}`)
    const seen = problems.length === 0 ? fine : `${problems.length}: ${problems[0]?.slice(0, 80)}`
    see(what, seen, bound, problems.length === 0)
  }

  const made = new Set(lines.flatMap(line => (line.kind === 'began' && line.attack ? [line.attack] : [])))
  const unmade = [...new Set(observed.waves.flat())].filter(attack => !made.has(attack))
  const failed = lines.flatMap(line => (line.kind === 'failed' ? [`${line.attack}: ${line.reason}`] : []))
  none('attacks', [...unmade, ...failed], `${made.size} kinds in ${rounds.turns} turns`, 'all of them made')
  none(
    'files outside its mounts',
    observed.touched,
    `${canaries.length} places as they were`,
    'neither read nor changed',
  )
  none(
    'secrets it may not see',
    [
      ...filesWith([observed.secret, modelKey], join(layout.groups, evil.folder)),
      ...filesWith([modelKey], layout.state),
    ],
    'in none of its files',
    'in none of its files',
  )
  const ways = lines.flatMap(line => (line.kind === 'tried' ? [line] : []))
  const out = new Set(ways.flatMap(({ what, got }) => (got === undefined ? [] : [`${what}: ${got}`])))
  none(
    'ways out',
    [...out],
    `${new Set(ways.map(({ what }) => what)).size} tried, none led out`,
    'none leads out',
  )
  const asked = [
    ...[...provider.seen.outside].map(path => `asked for ${path}`),
    ...[...provider.seen.otherKeys].map(key => `with the key ${key}`),
  ]
  none(
    'the model’s provider',
    asked,
    `${provider.seen.requests} requests below /v1/`,
    'below /v1/, the host’s key',
  )

  see(
    'a server on the host’s own network',
    decoy.seen.visits === 0 ? 'nobody came' : `${decoy.seen.visits} visits`,
    'nobody comes',
    decoy.seen.visits === 0,
  )
  none('the daemon', observed.ended === undefined ? [] : [observed.ended], 'runs', 'runs')
  none(
    'other groups’ agents',
    rounds.unanswered,
    `answered in all of ${rounds.turns} turns`,
    'start and answer meanwhile',
  )
  none(
    'another group’s requests',
    [
      ...testimony.complaints,
      ...(testimony.answered === testimony.asked ? [] : [`${testimony.answered} answers`]),
    ],
    `${testimony.asked} done in order`,
    'all done, in order',
  )
  const quiet = testimony.phases.find(({ name }) => name === 'quiet')
  const attacks = testimony.phases.filter(({ name, answered }) => !quietPhases.includes(name) && answered > 0)
  for (const { name, p50Ms, p99Ms, maxMs } of attacks)
    observed.progress(`another group during ${name}: p50 ${p50Ms} ms, p99 ${p99Ms} ms, at most ${maxMs} ms`)
  for (const [name, of, limit] of [
    ['p50', (one: Phase) => one.p50Ms, bounds.p50],
    ['p99', (one: Phase) => one.p99Ms, bounds.p99],
  ] as const) {
    const base = Math.max(1, quiet ? of(quiet) : Infinity)
    const inOrder = attacks.toSorted((a, b) => of(a) - of(b))
    const [middle, worst] = [inOrder[Math.floor(inOrder.length / 2)], inOrder.at(-1)]
    const times = (one: Phase | undefined) => (one ? of(one) / base : Infinity)
    const told = (one: Phase | undefined) => `${one ? of(one) : '?'} ms (${times(one).toFixed(1)} ×)`
    see(
      `another group’s ${name}`,
      `${base} ms quiet, ${told(middle)} mostly, ${told(worst)} during ${worst?.name}`,
      `≤ ${limit.mostly} × mostly, ≤ ${limit.worst} × or ${limit.ms} ms always`,
      times(middle) <= limit.mostly &&
        (times(worst) <= limit.worst || (worst ? of(worst) : Infinity) <= limit.ms),
    )
  }

  const journal = judge(layout, evil.folder, lines)
  none('predicted decisions', journal.wrong, `${journal.checked} as predicted`, 'exactly those')
  const { problems, counts } = intrusions(layout.state, evil, saidByOthers)
  none(
    'its rows in the store',
    problems,
    Object.entries(counts)
      .map(([name, n]) => `${n} ${name}`)
      .join(', '),
    'only what it may have',
  )
  none(
    'everybody else’s things',
    differences(testbed.before, assetsBeside(evil.folder, layout.state)),
    'as they were',
    'as they were',
  )
  none('tools that nobody allowed it', callsOf(testbed.installation.home), 'never called', 'never called')
  see(
    'the audit log',
    observed.audit.trim().split('\n').at(-1)?.slice(0, 60) ?? '',
    'verifies',
    observed.audit.startsWith('The audit log is intact'),
  )
  const { posted, total, shed } = journal
  const shedText = shed.least === shed.most ? `${shed.most}` : `${shed.least} to ${shed.most}`
  const missing = posted < total.least ? posted - total.least : Math.max(0, posted - total.most)
  see(
    'files it posted',
    `${posted}; ${journal.accepted} done, ${sum(Object.values(journal.refused))} refused, ${shedText} shed${missing === 0 ? '' : `, ${missing} not counted by one of the two`}`,
    `each accounted for, but for ${rounds.killed.length} killed turns`,
    // Files are counted by the hundred, before or after they are made.
    Math.abs(missing) <= 100 * rounds.killed.length,
  )
  none('files not handled', observed.unhandled, 'none', 'none')

  for (const [what, name, slack] of [
    ['rssMb', 'MB of memory', 40],
    ['handles', 'open handles', 10],
    ['watches', 'watches', 5],
    ['threads', 'threads', 6],
  ] as const) {
    const [first, last, most] = [usage.middle(what, 0.25, 0.5), usage.middle(what, 0.75, 1), usage.most(what)]
    const limit = Math.round(first * bounds.growth + slack)
    const bounded = what !== 'rssMb' || most <= bounds.mostMb
    see(
      `the host’s ${name}`,
      `${first}, then ${last}; at most ${most}`,
      `≤ ${limit} in the last quarter${what === 'rssMb' ? `, ${bounds.mostMb} at most` : ''}`,
      last <= limit && bounded,
    )
  }

  const dirty = Object.entries({ ...screens, log }).flatMap(([name, text]) => {
    const at = text.search(raw)
    return at < 0 ? [] : [`${name}: ${JSON.stringify(text.slice(Math.max(0, at - 60), at + 60))}`]
  })
  none(
    'raw characters',
    dirty,
    `none in ${Object.keys(screens).length} screens and the log`,
    'none on screens and in the log',
  )
  const reasons = readdirSync(layout.errors).filter(name => name.endsWith('.error.json'))
  const repeated = [
    ...[marker, modelKey].flatMap(word =>
      log.includes(word) ? [`the log: ${log.slice(log.indexOf(word) - 200).slice(0, 260)}`] : [],
    ),
    ...reasons.filter(name => readFileSync(join(layout.errors, name), 'utf8').includes(marker)),
  ]
  none('what was refused', repeated, `not repeated in the log and ${reasons.length} reasons`, 'not repeated')

  none('the group afterwards', observed.again === undefined ? [] : [observed.again], 'answers', 'answers')
  none('doctor', observed.newProblems, 'nothing new', 'nothing new that is bad')
  none('left behind', observed.leftovers, 'nothing', 'no process, mount, container, cgroup, file')
  return findings
}

/** Each line is a call that nobody allowed. */
function callsOf(home: string): string[] {
  const path = join(home, 'rig', 'calls')
  return existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter(Boolean) : []
}
