import { readdirSync, readFileSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { receiving } from '../receiving.ts'
import { serve } from '../serve.ts'
import { asFields, asNumber, asTexts } from '../shape.ts'

/** Lists its directories again and again, as NanoClaw's host does. */
const { open, handled, methods } = receiving()

serve({
  begin(argument) {
    const fields = asFields(argument)
    const directories = asTexts(fields.directories)
    const interval = asNumber(fields.every)
    open(fields)
    const sweep = () => {
      for (const directory of directories) {
        for (const name of readdirSync(directory)) {
          if (!name.endsWith('.json')) continue
          const path = join(directory, name)
          JSON.parse(readFileSync(path, 'utf8'))
          handled(name)
          unlinkSync(path)
        }
      }
      setTimeout(sweep, interval)
    }
    // answered first: whoever waits for the beginning must not wait for a backlog
    setImmediate(sweep)
  },
  ...methods,
})
