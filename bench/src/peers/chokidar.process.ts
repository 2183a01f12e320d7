import { readFileSync, unlinkSync } from 'node:fs'
import { basename } from 'node:path'
import { watch } from 'chokidar'
import { receiving } from '../receiving.ts'
import { serve } from '../serve.ts'
import { asFields, asText } from '../shape.ts'

/** The library most programs watch files with, on the root of all groups. It tells of what was there before, too. */
const { open, handled, methods } = receiving()

serve({
  begin(argument) {
    const fields = asFields(argument)
    open(fields)
    const watcher = watch(asText(fields.root), { ignored: path => path.endsWith('.tmp') })
    watcher.on('add', path => {
      JSON.parse(readFileSync(path, 'utf8'))
      handled(basename(path))
      unlinkSync(path)
    })
    return new Promise<void>((resolve, reject) => {
      watcher.once('ready', resolve)
      watcher.once('error', reject)
    })
  },
  ...methods,
})
