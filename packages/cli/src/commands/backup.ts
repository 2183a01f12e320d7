import { createWriteStream, existsSync, renameSync, rmSync } from 'node:fs'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { command } from '../command.ts'
import { Failure, usageError } from '../failure.ts'
import { bytes } from '../format.ts'
import { type CommonOptions, flag, required, switchedOn, type ValuesOf } from '../inputs.ts'
import { outliveReader, printJson, printLine } from '../output.ts'
import { withProgress } from '../progress.ts'
import { url, withClient } from '../session.ts'
import { visible } from '../text.ts'

const input = {
  file: required(
    'the file to write; - for standard output. *.gz is gzip, *.zst is zstd; else zstd, or gzip where Node has no zstd',
  ),
  groups: switchedOn('leave out the groups’ own files and repositories'),
  withToken: flag('include the token for browsers: whoever has the archive can sign in as operator'),
  force: flag('replace an existing file'),
}

export default command('backup', 'write everything into one archive, while the daemon keeps running', {
  example: '/backups/hatchway.tar.zst\n- | ssh elsewhere "cat > hatchway.tar.zst"',
  input,
  async run(given) {
    const { file, groups, json } = given
    checkTarget(given, json ?? false)
    // A reader that goes away has half a backup, which is a failure.
    if (file === '-') outliveReader()
    const { size, compression } = await writeBackup(given)
    if (file === '-') return
    if (json) return printJson({ file, bytes: size, compression, groups })
    const missing = groups ? '' : ' without the groups’ own files'
    await printLine(`Backup${missing} written to ${visible(file)}, ${bytes(size)}.`)
  },
})

/** undefined: the daemon's choice, which is zstd unless its Node has none */
const wantedFor = (file: string) =>
  /\.(gz|tgz)$/.test(file) ? 'gzip' : /\.(zst|tzst)$/.test(file) ? 'zstd' : undefined

interface Written {
  size: number
  compression: 'gzip' | 'zstd'
}

export async function writeBackup({
  file,
  groups,
  withToken: token = false,
  ...options
}: CommonOptions & { file: string; groups: boolean; withToken?: boolean | undefined }): Promise<Written> {
  let size = 0
  let compression: Written['compression'] = 'zstd'
  await withProgress('Writing the backup', say =>
    withClient(options, async client => {
      const archive = await client.download(url`/backup?${{ groups, token, compression: wantedFor(file) }}`)
      const counter = new Transform({
        transform(part: Buffer, _, done) {
          // The first byte of every gzip archive; zstd begins with another.
          if (size === 0 && part[0] === 0x1f) compression = 'gzip'
          size += part.length
          say(`Writing the backup: ${bytes(size)}`)
          done(null, part)
        },
      })
      await writeWhole(archive, counter, file)
    }),
  )
  return { size, compression }
}

function checkTarget({ file, force }: ValuesOf<typeof input>, json: boolean): void {
  if (file !== '-') {
    if (existsSync(file) && !force) throw new Failure(`${file} already exists. Use another name, or --force.`)
  } else if (json) throw usageError('With -, the output is the archive itself. Leave --json out.')
  else if (process.stdout.isTTY)
    throw usageError('A terminal cannot show an archive. Redirect the output to a file or a program.')
}

/** A file gets its name when it is complete. */
async function writeWhole(archive: NodeJS.ReadableStream, counter: Transform, file: string): Promise<void> {
  const unfinished = `${file}.unfinished`
  try {
    if (file === '-') return await pipeline(archive, counter, process.stdout, { end: false })
    await pipeline(archive, counter, createWriteStream(unfinished, { mode: 0o600 }))
    renameSync(unfinished, file)
  } catch (error) {
    if (file !== '-') rmSync(unfinished, { force: true })
    if (error instanceof Error && 'syscall' in error) throw error
    const reason = error instanceof Error ? error.message : error
    throw new Failure(`The backup failed: ${reason}. The daemon’s log may say more.`)
  }
}
