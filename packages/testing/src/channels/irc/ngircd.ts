import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findProgram } from '../../../../host/src/base/programs.ts'
import { freePort, listening } from '../free-port.ts'

export const isNgircdMissing = (): boolean => findProgram('ngircd') === undefined

/** A real IRC server of a test's own, on this machine only. It has no accounts: see accounts.ts. */
export async function startNgircd() {
  const program = findProgram('ngircd')
  if (program === undefined) throw new Error('ngircd is not installed')
  const home = mkdtempSync(join(tmpdir(), 'hatchway-ngircd-'))
  // It gives up its rights if it is started as root, and reads its configuration again then.
  chmodSync(home, 0o755)
  const port = await freePort()
  const config = join(home, 'ngircd.conf')
  writeFileSync(
    config,
    [
      `[Global]\nName = irc.test\nInfo = test\nNetwork = TestNet\nListen = 127.0.0.1\nPorts = ${port}\nMotdPhrase = hello`,
      '[Limits]\nMaxConnectionsIP = 0\nMaxNickLength = 20\nMaxPenaltyTime = 0',
      '[Options]\nDNS = no\nIdent = no\nPAM = no\nSyslogFacility = local1\n',
    ].join('\n'),
  )
  let server: ChildProcess | undefined
  const start = async () => {
    const started = spawn(program, ['-n', '-f', config], { stdio: ['ignore', 'pipe', 'pipe'] })
    server = started
    let output = ''
    for (const stream of [started.stdout, started.stderr])
      stream.on('data', chunk => {
        output += chunk
      })
    await listening(port, () =>
      started.exitCode === null ? undefined : `ngircd ended: ${output.slice(-2000)}`,
    )
  }
  const kill = async () => {
    const ending = server
    if (!ending || ending.exitCode !== null || ending.signalCode !== null) return
    const over = once(ending, 'exit')
    ending.kill('SIGKILL')
    await over
  }
  await start()
  return {
    port,
    start,
    kill,
    async close() {
      await kill()
      rmSync(home, { recursive: true, force: true })
    },
  }
}
