/** Finds paths of this repository that a page names and that do not exist. */
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../', import.meta.url))
/** Tables and walks leave these out, so that a path fits into a line. */
const bases = ['', 'packages', 'packages/host/src', 'packages/protocol/src']
const link = /\]\(([^)#\s]+)[^)]*\)/g
/** `folder/file.ts`, or a folder of the sources */
const named = /`((?:[\w.-]+\/)+[\w.-]+\.(?:tsx?|cjs|md))`|`((?:packages|scripts|bench|docs)\/[\w./-]+)`/g
/** made by a build */
const built = /\/dist\//

/** Each page with the paths in it that lead nowhere. */
export function deadPaths(): { page: string; path: string }[] {
  const pages = [...globSync('docs/**/*.md', { cwd: root }), 'CONTRIBUTING.md', 'README.md']
  return pages.flatMap(page => {
    const text = readFileSync(join(root, page), 'utf8')
    const linked = [...text.matchAll(link)].flatMap(([, path = '']) =>
      /^[a-z]+:/.test(path) || existsSync(join(root, dirname(page), path)) ? [] : [path],
    )
    const written = [...text.matchAll(named)].flatMap(([, file, folder]) => {
      const path = file ?? folder ?? ''
      if (built.test(path)) return []
      return bases.some(base => existsSync(join(root, base, path))) ? [] : [path]
    })
    return [...linked, ...written].map(path => ({ page, path }))
  })
}
