import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { openLive } from '../../../testing/src/daemon/in-process.ts'
import { createBubblewrap } from '../sandboxes/bubblewrap.ts'
import { createSandboxes } from '../sandboxes/choose.ts'
import { openSandboxChoice } from './sandbox-choice.ts'

test('what may run the concierge without isolation does not run the agent that an operator’s model brings', async () => {
  const { host, config, close } = await openLive({ agents: { sandbox: 'auto' } })
  onTestFinished(close)
  await host.addGroup({ folder: 'main', jid: 'web:main', name: 'Main', main: true, dialect: 'hatchway' })
  const group = host.store.group('main')
  if (!group) throw new Error('there is no group')
  const none = createBubblewrap({ program: '/nowhere/bwrap' })
  const choice = await openSandboxChoice({
    config,
    store: host.store,
    installation: 'a-test',
    log: pino({ level: 'silent' }),
    sandboxes: { ...createSandboxes(config), docker: none, podman: none, bubblewrap: none },
  })
  onTestFinished(choice.stop)
  expect((await choice.forGroup(group, 'concierge')).name).toBe('process')
  await expect(choice.forGroup(group, 'assistant')).rejects.toThrow('is not run without one')
  // Also those that ask at the same time get what their driver may have.
  const both = await Promise.allSettled([
    choice.forGroup(group, 'concierge'),
    choice.forGroup(group, 'assistant'),
  ])
  expect(both.at(1)).toMatchObject({ status: 'rejected' })
  expect((await choice.forGroup(group, 'concierge')).name).toBe('process')
})
