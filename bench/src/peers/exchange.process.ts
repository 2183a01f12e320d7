import { readFileSync, unlinkSync, watch } from 'node:fs'
import { join } from 'node:path'
import { post } from '../post.ts'
import { serve } from '../serve.ts'
import { asFields, asText } from '../shape.ts'

/** Answers requests as a host without any memory would: an event, a read, a parse, and a file back. */
const seen = new Set<string>()

serve({
  begin(argument) {
    const { requests, responses } = asFields(argument)
    const from = asText(requests)
    const to = asText(responses)
    watch(from, (_event, name) => {
      if (name === null || !name.endsWith('.json') || seen.has(name)) return
      const path = join(from, name)
      const id = asText(asFields(JSON.parse(readFileSync(path, 'utf8'))).id)
      post(to, `${id}.json`, JSON.stringify({ version: 1, id, ok: true, result: {} }))
      seen.add(name)
      unlinkSync(path)
    })
  },
})
