import { nanoclawPrompt } from '@hatchway/protocol'
import { environmentOf, foreign, readResults, stdinOf } from './foreign.ts'
import type { ContainerProtocol } from './types.ts'

export const nanoclaw: ContainerProtocol = {
  ...foreign,
  stdin: start => JSON.stringify(stdinOf(start, nanoclawPrompt)),
  environment: start => environmentOf('NANOCLAW', start),
  createReader: readResults('NANOCLAW'),
}
