import { type Writer, writers } from '../../writers/writers.ts'
import type { SoakGroup } from '../plan.ts'

/** The container that lives in a group. */
export function writerFor({ dialect }: SoakGroup): Writer {
  const found = writers.find(writer => writer.dialect === dialect)
  if (!found) throw new Error(`nobody speaks ${dialect}`)
  return found
}
