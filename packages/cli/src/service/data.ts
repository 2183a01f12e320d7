import { existsSync, readFileSync } from 'node:fs'
import type { CommonOptions } from '../inputs.ts'
import { findPlace } from '../session.ts'
import { thisMachine } from './machine.ts'
import { findManager } from './manager.ts'
import { dataIn } from './texts.ts'
import type { Manager } from './types.ts'

/** The data directory of an installed service. */
export const serviceData = ({ file }: Manager): string | undefined =>
  existsSync(file) ? dataIn(readFileSync(file, 'utf8')) : undefined

/** Whether it is this program that the service runs, on this data directory. */
export const serviceRuns = (manager: Manager, program: string, data: string): boolean =>
  serviceData(manager) === data && readFileSync(manager.file, 'utf8').includes(program)

/** The data directory as every command finds it; where there is none, that of the installed service. */
export async function findData(options: CommonOptions): Promise<string> {
  const { data } = await findPlace(options)
  if (options.data !== undefined || existsSync(data)) return data
  const asked = { user: undefined, system: undefined, name: undefined }
  return serviceData(findManager(asked, thisMachine(), { existing: true })) ?? data
}

/** The data directory of a program: unless one is named, of the service that runs it. */
export async function findDataOf(program: string, options: CommonOptions, manager: Manager): Promise<string> {
  const ofService = serviceData(manager)
  const isNamed = options.data !== undefined || options.config !== undefined
  if (!isNamed && ofService !== undefined && serviceRuns(manager, program, ofService)) return ofService
  return findData(options)
}
