import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished } from 'vitest'
import { openInstallation } from '../daemon/installation.ts'
import { type ModelRequest, serveMessagesApi } from './messages-api.ts'

interface Step {
  calls: readonly { name: string; input: object }[]
  /** what has to be in the answers to the calls */
  heard: readonly string[]
}

export const tool = (name: string, input: object = {}) => ({ name: `mcp__hatchway__${name}`, input })

const lastText = ({ messages }: ModelRequest): string =>
  JSON.stringify(messages.findLast(({ role }) => role === 'user'))

/** Claude's own program in a sandbox, whose model takes these steps, one after the other, once somebody says please. */
export async function openClaude<S extends Step>(
  steps: readonly S[],
  config: object,
  environment: (home: string) => Record<string, string>,
) {
  let step = 0
  const api = await serveMessagesApi(request => {
    const last = lastText(request)
    if (!last.includes('please') && !last.includes('tool_result')) return { text: 'Yes?' }
    const next = steps[step++]
    return next ? { calls: next.calls } : { text: 'All of it is done.' }
  })
  onTestFinished(() => api.close())
  const installation = await openInstallation({
    sandbox: 'bubblewrap',
    environment: home => {
      const file = join(home, 'hatchway.config.mjs')
      writeFileSync(file, `export default ${JSON.stringify({ agents: { driver: 'claude' }, ...config })}`)
      return {
        HATCHWAY_CONFIG: file,
        HATCHWAY_MODEL_URL: api.url,
        ANTHROPIC_API_KEY: 'sk-the-hosts-own-key',
        ...environment(home),
      }
    },
  })
  return {
    installation,
    /** what it says in the end; `decide` is asked once about each thing that waits for a person */
    async work(decide: (id: string, name: string, during: S | undefined) => Promise<void>) {
      let isOver = false
      const answer = installation
        .hatchway('chat', '--once', 'please do it', '--wait', '--timeout', '170')
        .finally(() => {
          isOver = true
        })
      const seen = new Set<string>()
      const deciding = (async () => {
        while (!isOver) {
          const open: { id: string; action: { name: string } }[] = JSON.parse(
            await installation.hatchway('approvals', 'list', '--json'),
          )
          for (const { id, action } of open.filter(({ id }) => !seen.has(id))) {
            seen.add(id)
            await decide(id, action.name, steps[step - 1])
          }
          await sleep(100)
        }
      })()
      const [said] = await Promise.all([answer, deciding])
      return said
    },
    /** what came back after each step, which has to hold all that the step says */
    expectHeard() {
      const heard = api.requests.filter(request => lastText(request).includes('tool_result')).map(lastText)
      for (const [index, { heard: facts }] of steps.entries()) {
        for (const fact of facts) expect(heard[index], JSON.stringify(steps[index])).toContain(fact)
      }
      return heard
    },
  }
}
