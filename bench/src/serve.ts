import { asFields, asNumber, asText } from './shape.ts'

type Methods = Readonly<Record<string, (argument: unknown) => unknown>>

/**
 * The side of a measuring process: answers the calls of children.ts until the parent goes away, and then goes away
 * itself, so that a benchmark that was killed leaves nothing running. `leave` ends first what would outlive it.
 */
export const serve = (methods: Methods, leave?: () => Promise<void>) => {
  let leaving = false
  const go = async () => {
    if (leaving) return
    leaving = true
    await leave?.().catch(console.error)
    process.exit(0)
  }
  process.on('disconnect', go)
  if (leave !== undefined) for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, go)
  process.on('message', async (message: unknown) => {
    const call = asFields(message)
    const id = asNumber(call.id)
    try {
      const method = methods[asText(call.method)]
      if (method === undefined) throw new Error(`no method ${String(call.method)}`)
      process.send?.({ id, value: await method(call.argument) })
    } catch (error) {
      process.send?.({ id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) })
    }
  })
}
