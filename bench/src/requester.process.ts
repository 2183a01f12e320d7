import { readFileSync, unlinkSync, watch } from 'node:fs'
import { join } from 'node:path'
import { request } from './messages.ts'
import { idleGap, pause, post } from './post.ts'
import { serve } from './serve.ts'
import { asFields, asNumber, asText } from './shape.ts'

/** The agent's side of a request: posts it, and knows the answer when the receipt has been read and parsed. */
const patience = 10_000
let directories = { requests: '', responses: '' }
let waiting: { name: string; received: (receipt: unknown, at: bigint) => void } | undefined
let tool: string | undefined
let sequence = 0

const ask = () =>
  new Promise<number>((resolve, reject) => {
    const now = new Date()
    const { id, body } = request(now, tool)
    const name = `${now.getTime()}-${String(sequence++).padStart(6, '0')}-${id.slice(-6)}.json`
    const timer = setTimeout(reject, patience, new Error(`no receipt for ${id} within ${patience} ms`))
    let start = 0n
    waiting = {
      name: `${id}.json`,
      received(receipt, at) {
        clearTimeout(timer)
        waiting = undefined
        // a refusal is quick too, and not what is measured
        if (asFields(receipt).ok === true) resolve(Number(at - start) / 1000)
        else reject(new Error(`refused: ${JSON.stringify(receipt)}`))
      },
    }
    start = post(directories.requests, name, body)
  })

serve({
  begin(argument) {
    const { requests, responses, tool: asked } = asFields(argument)
    tool = asked === undefined ? undefined : asText(asked)
    directories = { requests: asText(requests), responses: asText(responses) }
    watch(directories.responses, (_event, name) => {
      if (waiting === undefined || name !== waiting.name) return
      const path = join(directories.responses, name)
      const receipt: unknown = JSON.parse(readFileSync(path, 'utf8'))
      waiting.received(receipt, process.hrtime.bigint())
      unlinkSync(path)
    })
  },
  async ask(count) {
    const samples: number[] = []
    for (let index = 0; index < asNumber(count); index++) {
      await pause(idleGap)
      samples.push(await ask())
    }
    return samples
  },
})
