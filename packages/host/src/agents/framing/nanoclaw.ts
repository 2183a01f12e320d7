import { environmentOf, foreign, readResults, stdinOf } from './foreign.ts'
import type { Framing } from './types.ts'

export const nanoclaw: Framing = {
  ...foreign,
  dialect: 'nanoclaw',
  stdin: start => JSON.stringify(stdinOf(start)),
  environment: start => environmentOf('NANOCLAW', start),
  createReader: readResults('NANOCLAW'),
}
