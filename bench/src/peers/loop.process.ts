import { mkdirSync, readdirSync, readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { serve } from '../serve.ts'
import { asFields, asText, asTexts } from '../shape.ts'

/** What draining costs at least: list, sort, read, parse, rename, all synchronous; no order kept across a crash. */
serve({
  drain(argument) {
    const { directories, done } = asFields(argument)
    const to = asText(done)
    mkdirSync(to, { recursive: true })
    let files = 0
    const start = process.hrtime.bigint()
    for (const directory of asTexts(directories)) {
      for (const name of readdirSync(directory).sort()) {
        const path = join(directory, name)
        JSON.parse(readFileSync(path, 'utf8'))
        renameSync(path, join(to, name))
        files++
      }
    }
    const at = process.hrtime.bigint()
    return { files, at, seconds: Number(at - start) / 1e9 }
  },
})
