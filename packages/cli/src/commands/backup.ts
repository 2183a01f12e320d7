import { createReadStream, createWriteStream, existsSync, renameSync, rmSync, statSync } from 'node:fs'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Command } from 'commander'
import { exitCodes, Failure } from '../failure.ts'
import { when } from '../list.ts'
import { type CommonOptions, common } from '../options.ts'
import { printJson, printLine, writesInPassing } from '../output.ts'
import { withProgress } from '../progress.ts'
import { configOf, withClient } from '../session.ts'
import { visible } from '../text.ts'

interface BackupOptions extends CommonOptions {
  groups: boolean
  withToken?: boolean
  force?: boolean
}

export function addBackup(program: Command): void {
  common(
    program
      .command('backup')
      .description('put everything into one archive, while the daemon goes on')
      .argument('<file>', 'where to; - for standard output. *.gz becomes gzip, all else zstd'),
    'backup /backups/hatchway.tar.zst\nbackup - | ssh elsewhere "cat > hatchway.tar.zst"',
  )
    .option('--no-groups', 'without the groups’ own files and repositories')
    .option('--with-token', 'with what lets a browser in: whoever has the archive is an operator then')
    .option('--force', 'replace a file that is there')
    .action(backup)

  common(
    program
      .command('restore')
      .description('make a data directory of a backup; everything is checked before anything is changed')
      .argument('<file>', 'the archive; - for standard input'),
    'restore /backups/hatchway.tar.zst --data /srv/hatchway',
  )
    .option('--force', 'move a data directory that is there out of the way')
    .action(restore)
}

async function backup(file: string, options: BackupOptions): Promise<void> {
  const isOut = file === '-'
  if (isOut && options.json)
    throw new Failure('With - the archive itself is the output; leave --json out.', exitCodes.usage)
  if (isOut && process.stdout.isTTY)
    throw new Failure(
      'An archive is nothing for a terminal. Send it to a file or a program.',
      exitCodes.usage,
    )
  if (!isOut && existsSync(file) && !options.force)
    throw new Failure(`${file} is there already. Choose another name, or say --force.`)
  const compression = /\.(gz|tgz)$/.test(file) ? 'gzip' : 'zstd'
  const query = new URLSearchParams({
    groups: options.groups ? '1' : '0',
    token: options.withToken ? '1' : '0',
    compression,
  })
  // A reader that goes away has half a backup, and that is a failure.
  if (isOut) writesInPassing()
  let bytes = 0
  const unfinished = `${file}.unfinished`
  await withProgress('Making the backup', say =>
    withClient(options, async client => {
      const archive = await client.download(`/backup?${query}`)
      const counting = new Transform({
        transform(part: Buffer, _, done) {
          bytes += part.length
          say(`Making the backup: ${size(bytes)}`)
          done(null, part)
        },
      })
      try {
        // Whoever finds a file of this name has a whole backup.
        const target = isOut ? process.stdout : createWriteStream(unfinished, { mode: 0o600 })
        await pipeline(archive, counting, target, { end: !isOut })
        if (!isOut) renameSync(unfinished, file)
      } catch (error) {
        if (!isOut) rmSync(unfinished, { force: true })
        if (error instanceof Error && 'syscall' in error) throw error
        throw new Failure(
          `The backup was not finished: ${error instanceof Error ? error.message : error}. The daemon’s log may say more.`,
        )
      }
    }),
  )
  if (isOut) return
  if (options.json) return printJson({ file, bytes, compression, groups: options.groups })
  await printLine(
    `${visible(file)} holds everything${options.groups ? '' : ' but the groups’ own files'}: ${size(bytes)}.`,
  )
}

async function restore(file: string, options: CommonOptions & { force?: boolean }): Promise<void> {
  const isIn = file === '-'
  if (!isIn && !statSync(file, { throwIfNoEntry: false })?.isFile())
    throw new Failure(`There is no file ${file}.`)
  const [{ restoreBackup }, config] = await Promise.all([import('@hatchway/host'), configOf(options)])
  const source = isIn ? process.stdin : createReadStream(file, { highWaterMark: 1_048_576 })
  const restored = await withProgress('Restoring', say => {
    async function* archive(): AsyncGenerator<Buffer> {
      let bytes = 0
      for await (const part of source) {
        bytes += part.length
        say(`Restoring: ${size(bytes)} read`)
        yield part
      }
    }
    return restoreBackup(config, archive(), { force: options.force === true })
  })
  if (options.json) return printJson({ data: config.data, ...restored })
  await printLine(
    `${visible(config.data)} is as it was at ${when(restored.made_at)}: ${restored.groups} groups, ${restored.files} files, ${size(restored.bytes)}.`,
  )
  for (const { path, why } of restored.left_out.slice(0, 20))
    await printLine(`not in the backup: ${visible(path)} (${visible(why)})`)
  if (restored.left_out.length > 20) await printLine(`and ${restored.left_out.length - 20} more`)
  if (restored.moved_to !== null)
    await printLine(
      `What was there before is in ${visible(restored.moved_to)}. Remove it when you no longer need it.`,
    )
  await printLine(`Start it with: npx hatchway up --data ${visible(config.data)}`)
}

const size = (bytes: number): string =>
  bytes < 1_048_576 ? `${Math.ceil(bytes / 1024)} KiB` : `${(bytes / 1_048_576).toFixed(1)} MiB`
