import { command } from '../command.ts'
import { exitCodes } from '../failure.ts'
import { type CommonOptions, flag } from '../inputs.ts'
import { printJson, printLine } from '../output.ts'
import { withProgress } from '../progress.ts'
import { loadSettings } from '../session.ts'
import { visible } from '../text.ts'

const labels = { good: 'ok  ', warning: 'note', bad: 'BAD ' } as const

export default command('doctor', 'check everything Hatchway needs, and show how to fix problems', {
  example: '--data /srv/hatchway\n--fix',
  input: { fix: flag('fix what is safe: owners, modes, missing directories, leftovers of dead processes') },
  async run({ fix = false, ...options }) {
    const findings = await withProgress('Checking', () => examined(options, fix))
    if (options.json) await printJson(findings)
    else {
      for (const { what, state, says, fixed } of findings) {
        await printLine(`${labels[state]}  ${what}: ${visible(says)}`)
        if (fixed !== undefined) await printLine(`      fixed: ${visible(fixed)}`)
      }
    }
    if (findings.some(({ state }) => state === 'bad')) process.exitCode = exitCodes.failed
  },
})

async function examined(options: CommonOptions, fix: boolean) {
  const { examine } = await import('@hatchway/host')
  let config: Awaited<ReturnType<typeof loadSettings>>
  try {
    config = await loadSettings(options)
  } catch (error) {
    if (!(error instanceof Error && error.name === 'ConfigError')) throw error
    const says = `${error.message.replaceAll(/\n\s*/g, ' ')} Correct it, and run doctor again.`
    return [{ what: 'configuration', state: 'bad' as const, says, fixed: undefined }]
  }
  const findings = await examine(config, { fix })
  return findings.map(({ what, state, says, fixed }) => ({ what, state, says, fixed }))
}
