/** The agent's side of the hatch, for agents in JavaScript: `createHatch` asks the host and waits for its answer. */
export { createHatch, type Hatch, type HatchOptions, type Outcome } from './mcp/hatch.ts'
