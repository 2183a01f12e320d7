import type { RunStart } from '@hatchway/protocol'
import { completions } from './completions.ts'
import { generate } from './generate.ts'
import { messages } from './messages.ts'
import { responses } from './responses.ts'
import type { ModelApi } from './types.ts'

export type ApiName = NonNullable<RunStart['model_api']>

export const apis: Readonly<Record<ApiName, ModelApi>> = { messages, responses, completions, generate }
