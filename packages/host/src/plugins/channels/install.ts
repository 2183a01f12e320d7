import { join } from 'node:path'
import { installPackages } from '../../base/install-packages.ts'
import type { Layout } from '../../base/layout.ts'
import { kindOf } from './kinds.ts'
import { findLibrary, lockFolder } from './library.ts'

/** Undefined: there is no such channel. */
export function isChannelInstalled(layout: Layout, name: string): boolean | undefined {
  const kind = kindOf(name)
  return kind && findLibrary(layout, kind) !== undefined
}

/** The libraries of a channel, as its lock file has them. */
export const installChannel = (
  name: string,
  options: { layout: Layout; progress?(bytes: number): void },
): Promise<void> =>
  installPackages({
    layout: options.layout,
    place: join(options.layout.channels, name),
    from: lockFolder(name),
    progress: options.progress,
  })
