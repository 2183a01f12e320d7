import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * The programs of macOS that Hatchway asks, for tests on Linux: a directory for the front of PATH. `ps` and `lsof` are
 * Linux's own; only `-E`, which shows environments there, has another name here. Their answers are about real processes.
 */
export function macosPrograms(folder: string): string {
  const place = join(folder, 'macos-programs')
  mkdirSync(place)
  const real = (name: string) => execFileSync('which', [name], { encoding: 'utf8' }).trim()
  const program = (name: string, script: string) => {
    writeFileSync(join(place, name), `#!/bin/sh\n${script}\n`)
    chmodSync(join(place, name), 0o755)
  }
  program('ps', `case $1 in -axEww) shift; set -- axeww "$@";; esac\nexec ${real('ps')} "$@"`)
  program('sysctl', `[ "$*" = '-n kern.bootsessionuuid' ] && exec cat /proc/sys/kernel/random/boot_id`)
  return place
}
