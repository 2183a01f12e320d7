import type { ConfiguredValue, LentServer } from './settings.ts'

/** What a server is given of the host's environment: three harmless variables, and what the configuration names. */
const harmless = ['PATH', 'HOME', 'LANG']

type Given = { values: Record<string, string> } | { problem: string }

export function environmentFor({ env = [] }: Pick<LentServer, 'env'>, host: NodeJS.ProcessEnv): Given {
  const values: Record<string, string> = {}
  for (const name of harmless) {
    const value = host[name]
    if (value !== undefined) values[name] = value
  }
  const asked: [string, ConfiguredValue][] = Array.isArray(env)
    ? env.map(name => [name, { variable: name, prefix: '' }])
    : Object.entries(env)
  return fill(values, asked, host)
}

export function headersFor({ headers = {} }: Pick<LentServer, 'headers'>, host: NodeJS.ProcessEnv): Given {
  const given = fill({}, Object.entries(headers), host)
  if ('problem' in given) return given
  for (const [name, value] of Object.entries(given.values)) {
    // A key from a file often ends in a line break.
    const sent = value.trim()
    if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(sent))
      return { problem: `The header ${name} holds characters that no header can have.` }
    given.values[name] = sent
  }
  return given
}

/** A variable that is not there is told, not sent empty: the server would only say something less clear. */
function fill(
  values: Record<string, string>,
  asked: readonly [string, ConfiguredValue][],
  host: NodeJS.ProcessEnv,
): Given {
  for (const [name, given] of asked) {
    if (typeof given === 'string') {
      values[name] = given
      continue
    }
    const value = host[given.variable] ?? ''
    if (value === '') return { problem: `The host’s environment has no variable ${given.variable}.` }
    values[name] = given.prefix + value
  }
  return { values }
}
