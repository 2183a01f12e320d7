import { readFileSync, unlinkSync, watch } from 'node:fs'
import { join } from 'node:path'
import { serve } from '../serve.ts'
import { asText } from '../shape.ts'
import { stampLog } from '../stamps.ts'

/** As little as a Node program can do: an event, a read, a parse. It keeps no promise of any kind. */
const log = stampLog()
const seen = new Set<string>()

serve({
  begin(argument) {
    const directory = asText(argument)
    watch(directory, (_event, name) => {
      // removing the file rings as well
      if (name === null || !name.endsWith('.json') || seen.has(name)) return
      const path = join(directory, name)
      JSON.parse(readFileSync(path, 'utf8'))
      log.add(name, process.hrtime.bigint())
      seen.add(name)
      unlinkSync(path)
    })
  },
  take: () => log.take(),
})
