import { readdirSync, readFileSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { serve } from '../serve.ts'
import { asText } from '../shape.ts'
import { stampLog } from '../stamps.ts'

const interval = 1000
const log = stampLog()

const sweep = (directory: string) => {
  for (const name of readdirSync(directory)) {
    if (!name.endsWith('.json')) continue
    const path = join(directory, name)
    JSON.parse(readFileSync(path, 'utf8'))
    log.add(name, process.hrtime.bigint())
    unlinkSync(path)
  }
  setTimeout(sweep, interval, directory)
}

serve({
  begin: argument => sweep(asText(argument)),
  take: () => log.take(),
})
