import { Argument, InvalidArgumentError, Option } from 'commander'

/** An argument or an option of a command. `T` is the type of its value; only the compiler uses `type`. */
export interface Input<T> {
  make(name: string): readonly (Argument | Option)[]
  readonly type?: T
}

/** By name: `keyVariable` is the option `--key-variable`. */
export type Inputs = Readonly<Record<string, Input<unknown>>>
export type ValuesOf<I extends Inputs> = { [K in keyof I]: I[K] extends Input<infer T> ? T : never }

const dashed = (name: string) => name.replaceAll(/[A-Z]/g, letter => `-${letter.toLowerCase()}`)

const option = <T>(value: string, about: string, adjust = (made: Option) => made): Input<T> => ({
  make: name => [adjust(new Option(`--${dashed(name)}${value}`, about))],
})

export const flag = (about: string) => option<boolean | undefined>('', about)
export const text = (value: string, about: string) => option<string | undefined>(` <${value}>`, about)
export const requiredText = (value: string, about: string) =>
  option<string>(` <${value}>`, about, made => made.makeOptionMandatory())
export const choice = <N extends string>(value: string, about: string, names: readonly N[]) =>
  option<N | undefined>(` <${value}>`, about, made => made.choices(names))
export const parsed = <T>(value: string, about: string, parse: (text: string) => T) =>
  option<T | undefined>(` <${value}>`, about, made => made.argParser(parse))
export const texts = (value: string, about: string) =>
  option<string[]>(` <${value}>`, about, made =>
    made.argParser((one: string, before: string[]) => [...before, one]).default([]),
  )
/** `--no-name`: true unless it is given. */
export const switchedOn = (about: string): Input<boolean> => ({
  make: name => [new Option(`--no-${dashed(name)}`, about)],
})
/** `--name VALUE` sets a value, `--no-name` removes it (false). */
export const removable = (
  value: string,
  about: string,
  aboutRemoval: string,
): Input<string | false | undefined> => ({
  make: name => [...text(value, about).make(name), ...switchedOn(aboutRemoval).make(name)],
})

const argument = <T>(about: string, form: (name: string) => string): Input<T> => ({
  make: name => [new Argument(form(name), about)],
})
export const required = (about: string) => argument<string>(about, name => `<${name}>`)
export const optional = (about: string) => argument<string | undefined>(about, name => `[${name}]`)
export const several = (about: string) => argument<string[]>(about, name => `[${name}...]`)

export const withDefault = <T>(input: Input<T | undefined>, value: T): Input<T> => ({
  make: name => input.make(name).map(made => made.default(value)),
})

/** `-n` as well as `--name`. */
export const withShort = <T>(letter: string, input: Input<T>): Input<T> => ({
  make: name =>
    input
      .make(name)
      .map(made =>
        made instanceof Option
          ? Object.assign(made, { short: `-${letter}`, flags: `-${letter}, ${made.flags}` })
          : made,
      ),
})

export const positive = (given: string): number => {
  if (!/^[1-9]\d{0,8}$/.test(given)) throw new InvalidArgumentError('It must be a whole number above 0.')
  return Number(given)
}

/** What several commands take. */
export const group = text('folder', 'only this group')
export const limit = (usual: number, most = 10_000) =>
  withDefault(parsed('number', `how many to list, at most ${most}`, positive), usual)

export const common = {
  data: text('directory', 'the data directory (HATCHWAY_DATA; default: data)'),
  config: text(
    'file',
    'the configuration file (HATCHWAY_CONFIG; default: hatchway.config.ts, .mts, .mjs or .js)',
  ),
  json: flag('print JSON on standard output, and nothing else there'),
}
export type CommonOptions = Partial<ValuesOf<typeof common>>
