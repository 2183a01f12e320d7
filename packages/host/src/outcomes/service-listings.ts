import { dialects, type Group, type Services } from '@hatchway/protocol'
import type { Store } from '../store/types.ts'
import { createSnapshotFile, type SnapshotFileOptions } from './snapshot-file.ts'

/** `services.json`: what each group's agent may ask for, in its dialect. */
export interface ServiceListings {
  /** what agents may ask for is known by its digest; where that is another, all are written, bit by bit */
  changed(digest: string): void
  /** writes what one group may ask for, if it is not there */
  show(folder: string): void
  stop(): void
}

/** Whoever posts a file meanwhile should not notice. */
const sliceMs = 1

export function createServiceListings(
  options: SnapshotFileOptions & { store: Store; listing(group: Group): Services },
): ServiceListings {
  const { store, retries } = options
  const left = new Set<string>()
  let slice: NodeJS.Immediate | undefined
  let digest = ''

  const write = createSnapshotFile(
    'services.json',
    group => {
      const { services } = dialects[group.dialect]
      return services ? services(options.listing(group)) : 'unchanged'
    },
    options,
  )
  const note = (written: string) =>
    retries.inBackground('noting the services that groups see', () => store.setMeta('services', written))
  const show = (folder: string) => {
    const group = store.group(folder)
    if (group) write(group)
  }
  const writeSome = () => {
    const until = performance.now() + sliceMs
    for (const folder of left) {
      left.delete(folder)
      show(folder)
      if (performance.now() >= until) break
    }
    slice = left.size > 0 ? setImmediate(writeSome) : undefined
    if (!slice) note(digest)
  }

  return {
    changed(current) {
      // With thousands of groups it takes a second to look at all their files, at every start for nothing.
      const isKnown = digest === current || (digest === '' && store.meta('services') === current)
      digest = current
      if (isKnown) return
      note('')
      for (const { folder } of store.groups()) left.add(folder)
      slice ??= setImmediate(writeSome)
    },
    show,
    stop: () => clearImmediate(slice),
  }
}
