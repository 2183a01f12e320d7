import { type Command, InvalidArgumentError } from 'commander'

/** What every command takes. */
export interface CommonOptions {
  data?: string
  config?: string
  json?: boolean
}

export const common = (command: Command, example: string): Command =>
  command
    .option('--data <directory>', 'the data directory (HATCHWAY_DATA; default: data)')
    .option('--config <file>', 'the configuration file (HATCHWAY_CONFIG; default: hatchway.config.ts)')
    .option('--json', 'JSON on standard output, and nothing else there')
    .addHelpText('after', `\nExample:\n${example.replace(/^/gm, '  $ npx hatchway ')}`)

export const positive = (text: string): number => {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('It must be a whole number above 0.')
  return Number(text)
}
