import { oneLine } from '../base/visible-text.ts'

const longest = 60

/** `mcp__calendar__list_events` is "list events" to people. An agent may name it whatever it likes. */
export const nameOfTool = (tool: string): string =>
  oneLine(tool.split('__').at(-1) ?? '')
    .replaceAll('_', ' ')
    .trim()
    .slice(0, longest)
    .toWellFormed()
