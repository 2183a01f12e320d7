/** The picture of the host's rooms in docs/architecture.md, drawn from the imports in packages/host/src. */
import { globSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const source = fileURLToPath(new URL('../packages/host/src/', import.meta.url))
const isTest = /\.test\.ts$|(^|\/)testing(\/|\.ts$)/
const importedPath = /\b(?:from|import)\s*\(?\s*'(\.[^']+)'/g
/** Nearly every room imports these; their arrows would hide all others. */
const everywhere: readonly string[] = ['store', 'base', 'config']

/** From the top down. The rules that enforce the order are its only list: one rule per room. */
const rooms = (): string[] => {
  const { forbidden }: { forbidden: { name: string }[] } = createRequire(import.meta.url)(
    '../.dependency-cruiser.cjs',
  )
  const found = forbidden.flatMap(({ name }) => /^host-([\w-]+)-imports-downwards$/.exec(name)?.[1] ?? [])
  if (found.length === 0) throw new Error('.dependency-cruiser.cjs has no rules for the rooms of the host')
  return found.filter(room => !everywhere.includes(room))
}

const roomOf = (path: string): string => path.split('/')[0] ?? ''

/** Every room with the lower rooms that its files import, types included. An import upwards is an error elsewhere. */
const importsOf = (names: readonly string[]): Map<string, Set<string>> => {
  const imports = new Map(names.map(name => [name, new Set<string>()]))
  for (const file of globSync('*/**/*.ts', { cwd: source })) {
    const own = imports.get(roomOf(file))
    if (!own || isTest.test(file)) continue
    for (const [, path = ''] of readFileSync(join(source, file), 'utf8').matchAll(importedPath)) {
      const room = roomOf(join(file, '..', path))
      if (names.indexOf(room) > names.indexOf(roomOf(file))) own.add(room)
    }
  }
  return imports
}

export function roomGraph(): string {
  const names = rooms()
  const imports = importsOf(names)
  const reaches = (from: string, to: string): boolean =>
    [...(imports.get(from) ?? [])].some(next => next === to || reaches(next, to))
  const arrows = names.flatMap(from => {
    const own = imports.get(from) ?? new Set()
    return names
      .filter(to => own.has(to) && ![...own].some(other => reaches(other, to)))
      .map(to => `  ${from} --> ${to}`)
  })
  return ['```mermaid', 'flowchart TD', ...names.map(name => `  ${name}`), ...arrows, '```'].join('\n')
}
