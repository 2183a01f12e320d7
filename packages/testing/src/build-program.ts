import { bundleIfStale } from '../../agent/bundle.ts'
import { buildIfStale } from '../../cli/build.ts'

/** Before the first test, where somebody has changed the sources since. */
export default async function setup(): Promise<void> {
  await Promise.all([bundleIfStale(), buildIfStale()])
}
