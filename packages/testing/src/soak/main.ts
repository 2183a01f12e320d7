import { writeFileSync } from 'node:fs'
import { findProgram } from '../../../host/src/base/programs.ts'
import { report } from '../report.ts'
import { flatness } from './flatness.ts'
import { optionsFrom } from './options.ts'
import { soak } from './soak.ts'

const options = optionsFrom(process.argv.slice(2))
if (!options) process.exit(0)
console.log(`seed ${options.seed}: the same run again with --seed ${options.seed}`)
if (!findProgram('bwrap')) {
  process.exit(
    report([
      {
        what: 'sessions in bubblewrap',
        seen: 'bwrap is not installed here',
        bound: 'they come and go',
        ok: undefined,
      },
    ]),
  )
}

const early = new AbortController()
const interrupt = () => {
  if (early.signal.aborted) process.exit(130)
  console.error('it is ended early; once more to leave at once')
  early.abort()
}
process.on('SIGINT', interrupt)
process.on('SIGTERM', interrupt)

const begun = new Date()
const { samples, kept, accounts, sent, heard } = await soak(options, {
  signal: early.signal,
  progress: line => console.error(line),
})
const kinds: Record<string, number> = {}
for (const each of sent) {
  for (const [kind, count] of Object.entries(each.kinds)) kinds[kind] = (kinds[kind] ?? 0) + count
}
if (options.json !== undefined) {
  const about = { begun, options, kept, kinds, sent, heard }
  writeFileSync(options.json, `${JSON.stringify({ ...about, samples }, null, 1)}\n`)
}
console.log(
  `\nwhat was written: ${Object.entries(kinds)
    .map(([kind, count]) => `${count} × ${kind}`)
    .join(', ')}`,
)
console.log(
  `people: ${heard.chats.asked} messages to agents, ${heard.approvals} decisions, ${heard.questions} answers, ${heard.reconnects} reconnects of the console`,
)
console.log(
  `kept, so that everything is full within the first quarter: ${kept.messages} messages, ${kept.runs} runs, ${kept.tasks} tasks that are over, ${kept.audit} audit entries, ${kept.errorsOfAGroup} refused files and ${kept.fileBytes} bytes of files of each group; the journal begins with ${options.journal} commands, the fewest it keeps`,
)
if (options.minutes < 15)
  console.log('In less than a quarter of an hour not everything is full yet, and what fills up is not flat.')
const findings = [...accounts, ...flatness(samples)]
process.exit(report(findings))
