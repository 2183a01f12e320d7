import { buildIfStale } from '../../cli/build.ts'

/** Before the first test, where somebody has changed the sources since. */
export default async function setup(): Promise<void> {
  await buildIfStale()
}
