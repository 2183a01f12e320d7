import { createContext, Script } from 'node:vm'

/** Calls it, and throws where it would go on for ever: a pattern that does stops every timer of a test as well. */
export const bounded = <T>(call: () => T): T =>
  new Script('call()').runInContext(createContext({ call }), { timeout: 10_000 })
