import { readFileSync, unlinkSync, watch } from 'node:fs'
import { join } from 'node:path'
import { receiving } from '../receiving.ts'
import { serve } from '../serve.ts'
import { asFields, asTexts } from '../shape.ts'

/** As little as a Node program can do: an event, a read, a parse. It keeps no promise of any kind. */
const { open, handled, methods } = receiving()
const seen = new Set<string>()

serve({
  begin(argument) {
    const fields = asFields(argument)
    open(fields)
    for (const directory of asTexts(fields.directories)) {
      watch(directory, (_event, name) => {
        // removing the file rings as well
        if (name === null || !name.endsWith('.json') || seen.has(name)) return
        const path = join(directory, name)
        JSON.parse(readFileSync(path, 'utf8'))
        handled(name)
        seen.add(name)
        unlinkSync(path)
      })
    }
  },
  ...methods,
})
