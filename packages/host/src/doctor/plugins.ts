import { reasonOf } from '@hatchway/spool'
import type { ConfiguredPlugin } from '../plugin-api/open.ts'
import { bad, type DoctorContext, type Finding } from './types.ts'

/** What the plugins of the configuration have found out about themselves. */
export async function pluginChecks(patient: DoctorContext): Promise<Finding[]> {
  const findings: Finding[] = []
  for (const plugin of patient.plugins) findings.push(...(await checksOf(plugin, patient)))
  return findings
}

/** A check may be a stranger's. One that fails is a finding itself, and must not hide the others. */
async function checksOf(
  plugin: ConfiguredPlugin,
  { layout, environment }: DoctorContext,
): Promise<Finding[]> {
  const { name, checks: load } = plugin.manifest
  const what = `plugin ${name}`
  const findings: Finding[] = []
  try {
    const { checks } = (await load?.()) ?? { checks: [] }
    for (const check of checks) {
      try {
        findings.push(...(await check.run({ settings: plugin.settings, layout, environment })))
      } catch (error) {
        findings.push(bad(what, `Its check \`${check.name}\` failed: ${reasonOf(error)}`))
      }
    }
  } catch (error) {
    findings.push(bad(what, `Its checks could not be loaded: ${reasonOf(error)}`))
  }
  return findings
}
