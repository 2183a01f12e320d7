const mountKey = /mount|volume|bind/i

const isEmpty = (value: unknown): boolean =>
  !value || (typeof value === 'object' && Object.keys(value).length === 0)

/**
 * Whether a group's container configuration asks for anything to be mounted, at any depth and under any of the names
 * container engines use. The rest of the configuration is the host's affair and is never read from a file.
 */
export const asksForMounts = (configuration: unknown): boolean => {
  const open: unknown[] = [configuration]
  while (open.length > 0) {
    const node = open.pop()
    if (typeof node !== 'object' || node === null) continue
    for (const [key, value] of Object.entries(node)) {
      if (mountKey.test(key) && !isEmpty(value)) return true
      open.push(value)
    }
  }
  return false
}
