import type { Command } from 'commander'
import { exitCodes } from '../failure.ts'
import { type CommonOptions, common } from '../options.ts'
import { printJson, printLine } from '../output.ts'
import { withProgress } from '../progress.ts'
import { configOf } from '../session.ts'
import { visible } from '../text.ts'

const signs = { good: 'ok  ', warning: 'note', bad: 'BAD ' } as const

export function addDoctor(program: Command): void {
  common(
    program
      .command('doctor')
      .description('look at everything Hatchway needs, and say what to do about what is wrong'),
    'doctor --data /srv/hatchway\ndoctor --fix',
  )
    .option('--fix', 'do what is safe about it: owners, modes, missing directories, what dead processes left')
    .action(async (options: CommonOptions & { fix?: boolean }) => {
      const findings = await withProgress('Looking', () => look(options))
      if (options.json) await printJson(findings)
      else {
        for (const { what, state, says, fixed } of findings) {
          await printLine(`${signs[state]}  ${what}: ${visible(says)}`)
          if (fixed !== undefined) await printLine(`      fixed: ${visible(fixed)}`)
        }
      }
      if (findings.some(({ state }) => state === 'bad')) process.exitCode = exitCodes.failed
    })
}

async function look(options: CommonOptions & { fix?: boolean }) {
  const { examine } = await import('@hatchway/host')
  let config: Awaited<ReturnType<typeof configOf>>
  try {
    config = await configOf(options)
  } catch (error) {
    if (!(error instanceof Error && error.name === 'ConfigError')) throw error
    const says = `${error.message.replaceAll(/\n\s*/g, ' ')} Correct it, and run doctor again.`
    return [{ what: 'configuration', state: 'bad' as const, says, fixed: undefined }]
  }
  const findings = await examine(config, { fix: options.fix === true })
  return findings.map(({ what, state, says, fixed }) => ({ what, state, says, fixed }))
}
