import type { RunStart } from '@hatchway/protocol'
import type { ModelApi } from '../config/providers.ts'

export type DriverName = RunStart['driver']['name']

/** A package that is too large to come with Hatchway: people install it with `npx hatchway agents add`. */
interface DriverPackage {
  name: string
  /** npm installs the program in a package for this platform, whose name begins so */
  programs: string
  program: string
  /** tells the driver where the package is, if it is not beside the bundle */
  variable: string
  /** what people have to know of its licence before they install it */
  terms: string
}

/** What the host has to know about the driver inside the sandbox. A new driver adds one entry, and no check by name. */
export interface DriverTraits {
  /** it starts the program that `command` names */
  needsCommand: boolean
  /** whether it asks a model: never, if there is a key for one, or not without it */
  model: 'none' | 'optional' | 'required'
  /** the APIs it can ask a model by; left out: any, or none */
  speaks?: readonly ModelApi[]
  /** its shells ask the host before they run anything; otherwise it asks by itself, or runs no commands */
  asksThroughShells: boolean
  package?: DriverPackage
}

export const drivers: Readonly<Record<DriverName, DriverTraits>> = {
  concierge: { model: 'none', asksThroughShells: false, needsCommand: false },
  claude: {
    model: 'required',
    speaks: ['messages'],
    asksThroughShells: false,
    needsCommand: false,
    package: {
      name: '@anthropic-ai/claude-agent-sdk',
      programs: '@anthropic-ai/claude-agent-sdk-',
      program: 'claude',
      variable: 'HATCHWAY_CLAUDE_SDK',
      terms:
        'Claude is not free software: Anthropic’s terms apply to it. https://code.claude.com/docs/en/legal-and-compliance',
    },
  },
  assistant: { model: 'required', asksThroughShells: false, needsCommand: false },
  acp: { model: 'optional', asksThroughShells: true, needsCommand: true },
  command: { model: 'optional', asksThroughShells: true, needsCommand: true },
}
