import { existsSync } from 'node:fs'
import { pino } from 'pino'
import { project } from '../base/parts.ts'
import type { Config } from '../config.ts'
import { missingVariables } from '../plugin-api/check.ts'
import { findDriver, missingDriver, testedVersion } from '../runs/driver-packages.ts'
import { drivers } from '../runs/drivers.ts'
import { keyProblem, modelOf, modelsInUse, sentenceOf } from '../runs/model-gateway/health.ts'
import { checkMounts } from '../sandboxes/allowed-mounts.ts'
import { loadPlugins } from '../services/plugins.ts'
import { pluginChecks } from './plugins.ts'
import { bad, type DoctorContext, type Finding, good, some, warning } from './types.ts'

/** What is written in the configuration, compared with what is there. That it can be read at all was seen before. */
export async function configuration(patient: DoctorContext): Promise<Finding[]> {
  const { config } = patient
  const findings = [
    ...keys(patient),
    ...driverPackages(patient),
    // The daemon has the environment that counts, and has tried.
    ...(patient.checkup?.model && patient.checkup.model !== missing(patient)
      ? [bad('configuration', patient.checkup.model)]
      : []),
    ...groups(patient),
    ...mounts(config),
    ...(patient.lockOwner === 'daemon' ? [] : await serviceFiles(config)),
    ...(await pluginChecks(patient)),
  ]
  return findings.some(({ what }) => what === 'configuration')
    ? findings
    : [good('configuration', 'It can be read, and what it names is there.'), ...findings]
}

const missing = ({ config, layout, environment }: DoctorContext): string | undefined => {
  const driver = missingDriver(config, layout)
  return driver && sentenceOf({ cause: 'driver_missing', driver }, modelOf(config, environment))
}

function driverPackages(patient: DoctorContext): Finding[] {
  const { config, layout } = patient
  const sentence = missing(patient)
  if (sentence !== undefined) return [bad('configuration', sentence)]
  const used = new Set([config.agents, ...Object.values(config.groups)].map(({ driver }) => driver))
  return [...used].flatMap(name => {
    const version = name && findDriver(layout, name)?.version
    const tested = name && testedVersion(name)
    if (version === undefined || tested === undefined || version === tested) return []
    const says = `The driver ${name} is installed in version ${version}; this release was tested with ${tested}. Update it with: npx hatchway agents add ${name}`
    return [warning('configuration', says)]
  })
}

function keys({ config, checkup, environment }: DoctorContext): Finding[] {
  const { inspector } = config
  const models = modelsInUse(config).map(({ folder }) => modelOf(config, environment, folder))
  const wanting = models.filter(model => keyProblem(model, environment)?.cause === 'key_missing')
  return missingVariables(environment, [
    ...(checkup?.model ? [] : wanting.map(model => ({ variable: model.keyVariable, neededBy: 'the model' }))),
    ...(inspector.model === undefined
      ? []
      : [{ variable: inspector.keyVariable, neededBy: 'the inspector' }]),
  ])
}

function groups({ config, checkup }: DoctorContext): Finding[] {
  const known = checkup?.store?.groups.map(({ folder }) => folder.toLowerCase())
  const findings: Finding[] = []
  const unknown = known
    ? Object.keys(config.groups).filter(folder => !known.includes(folder.toLowerCase()))
    : []
  if (unknown.length > 0)
    findings.push(
      warning(
        'configuration',
        `\`groups\` has settings for ${some(unknown)}, and no such group is registered. Correct the folder, or register it: hatchway groups add.`,
      ),
    )
  for (const [folder, settings] of [['agents', config.agents] as const, ...Object.entries(config.groups)]) {
    const driver = settings.driver ?? config.agents.driver
    const command = settings.command ?? config.agents.command
    if (drivers[driver].needsCommand && (command ?? []).length === 0)
      findings.push(
        bad(
          'configuration',
          `${folder}: the driver \`${driver}\` needs \`command\`, the program and its arguments.`,
        ),
      )
  }
  return findings
}

function mounts(config: Config): Finding[] {
  if (config.mountsAllowed !== undefined && !existsSync(config.mountsAllowed))
    return [
      bad(
        'configuration',
        `\`mountsAllowed\` names ${config.mountsAllowed}, which does not exist. Make it, with a directory a line.`,
      ),
    ]
  return Object.entries(config.groups).flatMap(([folder, { mounts: requests }]) => {
    const checked = checkMounts(
      (requests ?? []).map(mount => ({ ...mount, writable: mount.writable })),
      { allowedFile: config.mountsAllowed, project, data: config.data },
    )
    return checked.ok
      ? []
      : checked.problems.map(problem => bad('configuration', `groups.${folder}: ${problem}`))
  })
}

async function serviceFiles(config: Config): Promise<Finding[]> {
  const services = await loadPlugins(config.services.plugins, pino({ level: 'silent' }))
  return services.flatMap(service => {
    const state = service.state?.()
    return state && !state.ok ? [bad('configuration', `services.plugins: ${state.text}`)] : []
  })
}
