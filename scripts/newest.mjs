// Commands are started by what imports this: see packages/cli/bin.
const take = async name => process.getBuiltinModule?.(name) ?? (await import(name))
const [{ readdirSync, statSync }, { join }] = await Promise.all(['node:fs', 'node:path'].map(take))

/** When the newest of these files was changed, tests aside: whether what is made of them is up to date. */
export const newestIn = paths => Math.max(...paths.map(newest))

function newest(path) {
  const stat = statSync(path)
  if (!stat.isDirectory()) return stat.mtimeMs
  let found = stat.mtimeMs
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    if (entry.name.includes('.test.') || entry.name === 'node_modules') continue
    const inside = join(path, entry.name)
    found = Math.max(found, entry.isDirectory() ? newest(inside) : statSync(inside).mtimeMs)
  }
  return found
}
