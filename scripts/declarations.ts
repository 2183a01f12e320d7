import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import ts from 'typescript'

const packages = join(import.meta.dirname, '..', 'packages')
/** sources of the packages that a published one contains */
const inside: Readonly<Record<string, string>> = {
  '@hatchway/protocol': 'protocol/src/index',
  '@hatchway/protocol/names': 'protocol/src/names',
  '@hatchway/protocol/uuid': 'protocol/src/uuid',
  '@hatchway/protocol/shell': 'protocol/src/shell/index',
  '@hatchway/spool': 'spool/src/index',
  '@hatchway/host/plugin': 'host/src/plugin',
  '@hatchway/host/config': 'host/src/config',
  '@hatchway/host/service': 'host/src/service',
  '@hatchway/host': 'host/src/index',
}

/**
 * Makes the declarations of all entries at once. What it returns writes those of some entries, and of every module they
 * need, into a folder, and says which file is whose. Imports lead to declarations beside them, so that nothing but the
 * package itself is needed.
 */
export function createDeclarations(all: readonly string[]) {
  const declarationOf = openProgram(all)
  return (entries: Readonly<Record<string, string>>, output: string): Record<string, string> => {
    const files = Object.entries(entries).map(
      ([name, file]) => [name, relative(packages, file).replace(/\.ts$/, '.d.ts')] as const,
    )
    const first = files.map(([, file]) => file)
    for (const file of needed(first, declarationOf)) {
      mkdirSync(dirname(join(output, file)), { recursive: true })
      writeFileSync(join(output, file), declarationOf(file))
    }
    return Object.fromEntries(files)
  }
}

/** A declaration by its path. Each is made when it is asked for: most modules are needed by none. */
function openProgram(all: readonly string[]): (file: string) => string {
  const { config } = ts.readConfigFile(join(packages, '..', 'tsconfig.json'), ts.sys.readFile)
  const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, join(packages, '..'))
  const program = ts.createProgram([...all], {
    ...options,
    noEmit: false,
    declaration: true,
    emitDeclarationOnly: true,
    rootDir: packages,
    outDir: packages,
    // As if they were files of one package: what is found in node_modules gets no declarations.
    paths: Object.fromEntries(
      Object.entries(inside).map(([name, path]) => [name, [join(packages, `${path}.ts`)]]),
    ),
  })
  const emitted = new Map<string, string>()
  return file => {
    const source = program.getSourceFile(join(packages, file.replace(/\.d\.ts$/, '.ts')))
    if (!emitted.has(file) && source)
      program.emit(source, (_, text) => emitted.set(file, rewritten(text, dirname(file))))
    return emitted.get(file) ?? ''
  }
}

const imports = /(from |import\(|import )(['"])([^'"]+)\2/g

/** These and what they import: a type is often simpler than what it is made with. */
function needed(files: readonly string[], declarationOf: (file: string) => string): Set<string> {
  const found = new Set(files)
  for (const file of found) {
    for (const [, , , name = ''] of declarationOf(file).matchAll(imports)) {
      if (name.startsWith('.')) found.add(join(dirname(file), name).replace(/\.js$/, '.d.ts'))
    }
  }
  return found
}

/** `./other.ts` becomes `./other.js`, which stands for its declarations; a workspace becomes a path to its own. */
const rewritten = (text: string, folder: string): string =>
  text.replace(imports, (whole, before: string, quote: string, name: string) => {
    const own = inside[name]
    if (own !== undefined) {
      const path = relative(folder, own)
      return `${before}${quote}${path.startsWith('.') ? path : `./${path}`}.js${quote}`
    }
    return name.startsWith('.') ? `${before}${quote}${name.replace(/\.ts$/, '.js')}${quote}` : whole
  })
