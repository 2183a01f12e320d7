import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openInstallation } from '../src/daemon/installation.ts'
import { until } from '../src/until.ts'

/**
 * A run with a context of its own reads what strangers wrote, leaves half a command, and completes it with its last
 * breath: the host reads it when the run is gone, and what the run had read with it.
 */
test('what a run leaves behind is judged by what it had read', async ({ onTestFinished }) => {
  const register = { jid: 'x@chat', name: 'X', folder: 'washed' }
  const command = JSON.stringify({ version: 1, id: 'late', type: 'register_group', payload: register })
  const look = { version: 1, id: 'net', type: 'check_shell', payload: { command: 'curl example.org' } }
  const script = `
    cat > /dev/null
    echo '${JSON.stringify(look)}' > $HATCHWAY_IPC/tasks/net.json
    while [ ! -e $HATCHWAY_IPC/responses/net.json ]; do sleep 0.05; done
    exec 3> $HATCHWAY_IPC/tasks/late.json
    printf '%s' '${command.slice(0, 20)}' >&3
    sleep 1
    printf '%s' '${command.slice(20)}' >&3
    kill -9 $PPID`
  const installation = await openInstallation({
    // Only one with a network brings in what strangers wrote by a shell command.
    sandbox: 'process',
    atEnd: onTestFinished,
    environment: home => {
      const file = join(home, 'hatchway.config.mjs')
      const config = { agents: { driver: 'command', command: ['/bin/sh', '-c', script] } }
      writeFileSync(file, `export default ${JSON.stringify(config)}`)
      return { HATCHWAY_CONFIG: file }
    },
  })
  const task = { prompt: 'go', schedule_type: 'cron', schedule_value: '0 0 1 1 *', context_mode: 'isolated' }
  const scheduled = await installation.hatchway(
    ...['post', '--group', 'main', '--type', 'schedule_task', '--wait', '--json'],
    ...['--payload', JSON.stringify(task)],
  )
  await installation.runTask(JSON.parse(scheduled).result.task_id)
  const audited = () => installation.hatchway('audit', 'list', '--json')
  await until(async () => (await audited()).includes('register_group'))
  // A person would have to be asked. Whoever wanted it is gone, so nobody is, or not for long.
  await until(async () => /"(denied|withdrawn)"/.test(await audited()))
  expect(await installation.hatchway('approvals', 'list', '--json')).toMatch(/^\s*\[\s*\]\s*$/)
  expect(await installation.hatchway('groups', 'list')).not.toContain('washed')
})
