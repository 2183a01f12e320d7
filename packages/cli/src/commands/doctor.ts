import type { Command } from 'commander'
import { exitCodes } from '../failure.ts'
import { type CommonOptions, common } from '../options.ts'
import { printJson, printLine } from '../output.ts'
import { configOf } from '../session.ts'
import { visible } from '../text.ts'

const signs = { good: 'ok  ', warning: 'note', bad: 'BAD ' } as const

export function addDoctor(program: Command): void {
  common(
    program
      .command('doctor')
      .description('look at what agents need on this machine, and say what to do about what is wrong'),
    'doctor --data /srv/hatchway',
  ).action(async (options: CommonOptions) => {
    const [{ examine }, config] = await Promise.all([import('@hatchway/host'), configOf(options)])
    const findings = await examine(config)
    if (options.json) await printJson(findings)
    else {
      for (const { what, state, says } of findings)
        await printLine(`${signs[state]}  ${what}: ${visible(says)}`)
    }
    if (findings.some(({ state }) => state === 'bad')) process.exitCode = exitCodes.failed
  })
}
