import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RunStart } from '@hatchway/protocol'
import { localTime } from '../../mcp/local-time.ts'
import type { RunEnvironment } from '../../run/environment.ts'
import { aboutThePlace } from '../prompt.ts'
import { shortened } from './window.ts'

/** What the model is told about itself; short, as a small model reads all of it before each answer. */
export function aboutItself(
  start: RunStart,
  { groupDirectory, globalDirectory }: RunEnvironment,
  { now, context }: { now: Date; context: number },
): { own: string; instructions: string } {
  const own = [
    aboutThePlace(start, 'Your tools'),
    `Your folder is ${groupDirectory}; what is to last goes there as files. Relative paths begin there. Read a file before you change it.`,
    'Do what is asked with your tools instead of describing it, and look at their results: claim nothing that they do not say. When you have what you need, answer without calling more.',
    `This session began at ${localTime(now.toISOString(), start.timezone)}.`,
  ].join('\n')
  // A sixteenth of what the model can hold for each.
  const instructions = [globalDirectory, groupDirectory].map(directory =>
    instructionsIn(directory, context / 16),
  )
  return { own, instructions: instructions.join('') }
}

const names = ['AGENTS.md', 'CLAUDE.md']

/** What the operator, or the group itself, has written down for its agent. The first of these files that is there. */
function instructionsIn(directory: string, tokens: number): string {
  for (const name of names) {
    const text = textOf(join(directory, name))
    if (text !== '') return `\n\n# ${name}\n${shortened(text, tokens)}`
  }
  return ''
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'ENOENT' || code === 'ENOTDIR') return ''
    throw error
  }
}
