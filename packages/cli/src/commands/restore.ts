import { createReadStream, statSync } from 'node:fs'
import { command } from '../command.ts'
import { Failure } from '../failure.ts'
import { bytes, plural, when } from '../format.ts'
import { flag, required } from '../inputs.ts'
import { printJson, printLine } from '../output.ts'
import { withProgress } from '../progress.ts'
import { loadSettings } from '../session.ts'
import { visible } from '../text.ts'

const mostListed = 20

export default command(
  'restore',
  'create a data directory from a backup; the backup is checked before anything is changed',
  {
    example: '/backups/hatchway.tar.zst --data /srv/hatchway',
    input: {
      file: required('the archive; - for standard input'),
      force: flag('move an existing data directory aside'),
    },
    async run({ file, force = false, json, ...options }) {
      if (file !== '-' && !statSync(file, { throwIfNoEntry: false })?.isFile())
        throw new Failure(`There is no file ${file}.`)
      const [{ restoreBackup }, config] = await Promise.all([import('@hatchway/host'), loadSettings(options)])
      const source = file === '-' ? process.stdin : createReadStream(file, { highWaterMark: 1_048_576 })
      const restored = await withProgress('Restoring', say => {
        async function* archive(): AsyncGenerator<Buffer> {
          let size = 0
          for await (const part of source) {
            size += part.length
            say(`Restoring: ${bytes(size)} read`)
            yield part
          }
        }
        return restoreBackup(config, archive(), { force })
      })
      if (json) return printJson({ data: config.data, ...restored })
      const { made_at, groups, files, left_out, moved_to } = restored
      await printLine(
        `Restored the backup of ${when(made_at)} to ${visible(config.data)}: ${plural(groups, 'group')}, ${plural(files, 'file')}, ${bytes(restored.bytes)}.`,
      )
      for (const { path, why } of left_out.slice(0, mostListed))
        await printLine(`not in the backup: ${visible(path)} (${visible(why)})`)
      if (left_out.length > mostListed) await printLine(`and ${left_out.length - mostListed} more`)
      if (moved_to !== null)
        await printLine(`The previous data is in ${visible(moved_to)}. Remove it when you no longer need it.`)
      await printLine(`Start it with: npx hatchway up --data ${visible(config.data)}`)
    },
  },
)
