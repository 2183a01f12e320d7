import type { Plugin } from 'rolldown'

const statement = /\s*(?:\/\/.*|import\s*(?:([^"';]*?)\s*from\s*)?(["'])([^"']+)\2;)/y

/**
 * `import` of a part of Node evaluates all that it exports, and some of that is large: fetch and WebSocket for `http`, streams
 * and promises for `fs`. In bundles only what is used is taken.
 */
export const takenBuiltins = (): Plugin => ({
  name: 'taken-builtins',
  renderChunk: code => ({ code: takeBuiltins(code), map: null }),
})

/** In the statements at the head of a file, which is where a bundler puts them all. */
export function takeBuiltins(code: string): string {
  const begin = /^(?:#!.*\n)?/.exec(code)?.[0].length ?? 0
  let made = code.slice(0, begin)
  let end = begin
  for (;;) {
    statement.lastIndex = end
    const found = statement.exec(code)
    if (!found) return made + code.slice(end)
    const [whole, names, , from = ''] = found
    made += names !== undefined && from.startsWith('node:') ? taken(whole, names, from) : whole
    end += whole.length
  }
}

function taken(statement: string, names: string, from: string): string {
  const [, whole, , named] = /^(?:(?:\* as )?([\w$]+))?(,\s*)?(?:\{(.*)\})?$/s.exec(names) ?? []
  // Some have a `process` of their own, which is one of these.
  const taking = `globalThis.process.getBuiltinModule("${from}")`
  const made: string[] = []
  if (whole !== undefined) made.push(`${whole} = ${taking}`)
  if (named !== undefined) made.push(`{${named.replaceAll(/ as /g, ': ')}} = ${whole ?? taking}`)
  if (made.length === 0) throw new Error(`An import in the bundle is not understood: ${statement}`)
  return `${/^\s*/.exec(statement)?.[0]}const ${made.join(', ')};`
}
