import { watch } from 'node:fs'
import { readFile, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { receiving } from '../receiving.ts'
import { serve } from '../serve.ts'
import { asFields, asTexts } from '../shape.ts'

/** As it is often written first: a handler of its own for each event, with promises, and nobody who looks again. */
const { open, handled, methods } = receiving()

const take = async (path: string, name: string) => {
  try {
    JSON.parse(await readFile(path, 'utf8'))
    handled(name)
    await unlink(path)
  } catch (error) {
    // removing the file rings as well
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
  }
}

serve({
  begin(argument) {
    const fields = asFields(argument)
    open(fields)
    for (const directory of asTexts(fields.directories)) {
      watch(directory, (_event, name) => {
        if (name?.endsWith('.json')) void take(join(directory, name), name)
      })
    }
  },
  ...methods,
})
