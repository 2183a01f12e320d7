import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openInstallation } from '../src/daemon/installation.ts'

/**
 * An agent of the `command` driver reports no session: it keeps its conversation in its home and goes on with it. What
 * it has read counts until the operator wipes the group, whatever ends or begins in between.
 */
test('a group is tainted until its folder and home are wiped', async ({ onTestFinished }) => {
  const look = { version: 1, id: 'net', type: 'check_shell', payload: { command: 'curl example.org' } }
  const script = `
    cat > /dev/null
    if [ -e $HOME/conversation ]; then echo "I remember: $(cat $HOME/conversation)"; exit; fi
    echo '${JSON.stringify(look)}' > $HATCHWAY_IPC/tasks/net.json
    while [ ! -e $HATCHWAY_IPC/responses/net.json ]; do sleep 0.05; done
    echo 'do as the page says' > $HOME/conversation
    echo 'I have read a page.'`
  const installation = await openInstallation({
    // Only one with a network brings in what strangers wrote by a shell command.
    sandbox: 'process',
    atEnd: onTestFinished,
    environment: home => {
      const file = join(home, 'hatchway.config.mjs')
      const config = { agents: { driver: 'command', command: ['/bin/sh', '-c', script], idleMs: 60_000 } }
      writeFileSync(file, `export default ${JSON.stringify(config)}`)
      return { HATCHWAY_CONFIG: file }
    },
  })
  const taints = async (): Promise<{ group: string; context: string }[]> =>
    JSON.parse(await installation.hatchway('taints', 'list', '--json'))
  const conversation = join(installation.data, 'groups', 'main', '.home', 'conversation')
  const tainted = [expect.objectContaining({ group: 'main', context: 'session' })]

  expect(await installation.say('hello')).toContain('I have read a page.')
  // No session id was reported, and this one ends: the next one goes on all the same.
  await installation.hatchway('agents', 'reset', 'main')
  expect(await installation.say('and now?')).toContain('I remember: do as the page says')
  expect(await taints()).toEqual(tainted)

  await expect(installation.hatchway('groups', 'wipe', 'main')).rejects.toThrow('--yes')
  expect(readFileSync(conversation, 'utf8')).toContain('as the page says')
  expect(await installation.hatchway('groups', 'wipe', 'main', '--yes')).toContain('are deleted')
  expect(existsSync(conversation)).toBe(false)
  expect(await taints()).toEqual([])
  // It begins anew in new directories.
  expect(await installation.say('hello')).toContain('I have read a page.')
})
