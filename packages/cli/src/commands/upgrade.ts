import { accessSync, constants, existsSync, mkdirSync, renameSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { command } from '../command.ts'
import { Failure, usageError } from '../failure.ts'
import { bytes } from '../format.ts'
import { type CommonOptions, flag, text } from '../inputs.ts'
import { note, printJson, printLine } from '../output.ts'
import { withProgress } from '../progress.ts'
import { withQuestions } from '../questions.ts'
import { findDataOf, serviceRuns } from '../service/data.ts'
import { findInstallation, type Installation, versionIn } from '../service/installation.ts'
import { createPrograms, type Programs, thisMachine } from '../service/machine.ts'
import { findManager, serviceInputs, timeout, usualName } from '../service/manager.ts'
import { changesSince, findRelease, installRelease, isNewer } from '../service/releases.ts'
import { waitUntilReady } from '../service/set-up.ts'
import type { Manager } from '../service/types.ts'
import { visible } from '../text.ts'
import { writeBackup } from './backup.ts'

export default command(
  'upgrade',
  'say what is new, make a backup, install it, and go back if it does not start',
  {
    example: '--check\n--to 1.2.0 --yes',
    input: {
      check: flag('only say what is new'),
      to: text('version', 'this version (default: the newest)'),
      yes: flag('do not ask'),
      backup: text(
        'place',
        'the backup’s directory, or its file: *.zst or *.gz (default: hatchway-backups beside the data directory)',
      ),
      timeout,
      ...serviceInputs,
    },
    async run({ check, to, yes, json, timeout: seconds, ...options }) {
      const installation = findInstallation()
      refuseOthers(installation)
      const { directory, version } = installation
      const machine = thisMachine()
      const programs = await createPrograms(machine.env, async line => (json ? undefined : printLine(line)))
      const release = await withProgress('Asking npm', () => findRelease(programs, to))
      const isWanted = to === undefined ? isNewer(release, version) : release !== version
      const changes = isWanted
        ? await withProgress('Reading what is new', () => changesSince(programs, version, release))
        : undefined
      const found = {
        installed: version,
        available: release,
        upgrade: isWanted,
        directory,
        changes: changes ?? null,
      }
      if (!json) await printFound(found)
      if (check || !isWanted) return json ? printJson(found) : undefined
      if (!yes) await confirm(release)
      checkWritable(directory)

      const manager = findManager(options, machine, { existing: true })
      if (options.name !== usualName && !existsSync(manager.file))
        throw new Failure(`There is no service ${options.name}: ${manager.file} does not exist.`)
      const data = await findDataOf(installation.program, options, manager)
      const backup = await backUp({ ...options, data }, version)
      if (!json) await printLine(`Backup written to ${visible(backup.file)}, ${bytes(backup.size)}.`)
      const restarted = await replace({
        installation,
        release,
        data,
        backup: backup.file,
        manager,
        programs,
        seconds,
      })
      if (json) return printJson({ ...found, backup: backup.file, restarted })
      await printLine(`${release} is installed${restarted ? ' and running' : ''}.`)
    },
  },
)

function refuseOthers({ kind, directory }: Installation): void {
  if (kind === 'clone')
    throw new Failure(
      `${directory} is a clone. Upgrade it with: git pull && npm ci && npm run build. Then restart the daemon, or, if it is supervised: hatchway deploy`,
    )
  if (kind === 'npx')
    throw new Failure('npx has fetched Hatchway for this call only. For the newest one: npx hatchway@latest')
  if (kind === 'pnpm')
    throw new Failure(
      'pnpm has installed this. Make a backup with hatchway backup FILE, then: pnpm add --global hatchway@latest',
    )
}

async function printFound(found: {
  installed: string
  available: string
  upgrade: boolean
  directory: string
  changes: string | null
}) {
  const { installed, available, upgrade, directory, changes } = found
  await printLine(`Installed: ${installed}, in ${visible(directory)}`)
  if (!upgrade)
    return printLine(
      available === installed ? 'That is the newest.' : `npm has ${available}, which is older.`,
    )
  await printLine(`Available: ${available}\n`)
  await printLine(
    changes === null ? 'It has no changelog.\n' : `${changes.split('\n').map(visible).join('\n')}\n`,
  )
}

async function confirm(release: string): Promise<void> {
  if (!process.stdin.isTTY) throw usageError(`To install ${release} without being asked, add --yes.`)
  const answer = await withQuestions(({ choose }) => choose(`Install ${release}?`, ['yes', 'no'], 'yes'), {
    whenEnded: 'Nothing was changed.',
  })
  if (answer === 'no') throw usageError('Nothing was changed.')
}

/** npm would notice too, but only after the backup, and in more words. */
function checkWritable(directory: string): void {
  try {
    accessSync(dirname(directory), constants.W_OK)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error
    throw new Failure(`You may not write to ${dirname(directory)}. Repeat this with sudo, or as its owner.`)
  }
}

async function backUp(
  options: CommonOptions & { data: string; backup: string | undefined },
  version: string,
) {
  const place = options.backup ?? join(dirname(options.data), 'hatchway-backups')
  const isFile =
    /\.(gz|tgz|zst|tzst)$/.test(place) && !statSync(place, { throwIfNoEntry: false })?.isDirectory()
  if (isFile && existsSync(place)) throw new Failure(`${place} already exists. Use another name.`)
  mkdirSync(isFile ? dirname(place) : place, { recursive: true, mode: 0o700 })
  const time = new Date().toISOString().replaceAll(/[-:]|\.\d+/g, '')
  const draft = isFile ? place : join(place, `hatchway-${version}-${time}.tar`)
  const { size, compression } = await writeBackup({ ...options, file: draft, groups: true })
  if (isFile) return { file: place, size }
  const file = `${draft}.${compression === 'gzip' ? 'gz' : 'zst'}`
  renameSync(draft, file)
  return { file, size }
}

interface Replacement {
  installation: Installation
  release: string
  data: string
  backup: string
  manager: Manager
  programs: Programs
  seconds: number
}

/**
 * Resolves with whether a service was restarted. Everything that is needed after `install` is loaded before: npm removes
 * the files of this process, and a release has others.
 */
async function replace({
  installation,
  release,
  data,
  backup,
  manager,
  programs,
  seconds,
}: Replacement): Promise<boolean> {
  const { version, directory } = installation
  const { findDaemon } = await import('@hatchway/host/api')
  const old = await findDaemon(data)
  const isService =
    serviceRuns(manager, installation.program, data) && (await manager.state(programs)).running
  const file = join(directory, 'package.json')
  const installedVersion = () => (existsSync(file) ? versionIn(file) : undefined)
  const install = (wanted: string) =>
    withProgress(`Installing ${wanted}`, () => installRelease(programs, installation, wanted))
  // Whatever goes wrong, the way back is taken.
  const startsAgain = async () => {
    try {
      await programs.run(...manager.restart)
      return await withProgress('Waiting for the daemon', () =>
        waitUntilReady(data, { findDaemon, replaces: old, hasConsole: old?.link !== undefined, seconds }),
      )
    } catch (error) {
      note(error instanceof Error ? error.message : String(error))
      return undefined
    }
  }
  const restore = `hatchway restore ${backup} --data ${data} --force`
  try {
    await install(release)
  } catch (error) {
    if (installedVersion() !== version) await install(version)
    const reason = error instanceof Error ? error.message : error
    throw new Failure(
      `${reason}\nNothing was upgraded: ${version} is still installed. The backup is ${backup}.`,
    )
  }
  const got = installedVersion()
  if (got !== release)
    throw new Failure(`npm has installed ${got} instead of ${release}. The backup is ${backup}.`)
  if (!isService) {
    if (old)
      note(`restart the daemon (process ${old.pid}) yourself, which is no service: it still runs ${version}.`)
    return false
  }
  if (await startsAgain()) return true
  try {
    await install(version)
  } catch (error) {
    const reason = error instanceof Error ? error.message : error
    throw new Failure(
      `${reason}\n${release} did not start, and ${version} could not be installed again. Try it later: hatchway upgrade --to ${version}. The backup is ${backup}.`,
    )
  }
  const isBack = await startsAgain()
  throw new Failure(
    isBack
      ? `${release} did not start, so ${version} is installed and running again. See why: hatchway logs. If data is missing, stop the service and restore the backup: ${restore}`
      : `Neither ${release} nor ${version} starts; ${version} is installed. If ${release} has changed the database, stop the service, restore the backup, and start it: ${restore}`,
  )
}
