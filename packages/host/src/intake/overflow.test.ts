import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { configFor } from '../../../testing/src/daemon/in-process.ts'
import { launch } from '../../../testing/src/daemon/process.ts'
import { roomyFolder } from '../../../testing/src/folders.ts'
import { until } from '../../../testing/src/until.ts'
import { folderOfText, type Load, produce } from '../../../testing/src/writers/producer.ts'
import { statusAnswer } from '../api/answers.ts'
import { connect } from '../api.ts'
import { registerGroups } from '../assemble/register.ts'
import { layoutOf } from '../base/layout.ts'
import { openStore } from '../store/sqlite.ts'

test('60,000 files, posted as fast as two producers can, are all handled, each once', async () => {
  const data = roomyFolder('overflow')
  const config = configFor(data)
  const layout = layoutOf(data)
  const folders = Array.from({ length: 20 }, (_, i) => `group-${i}`)
  await registerGroups(
    config,
    folders.map(folder => ({
      folder,
      jid: `${folder}@chat`,
      name: folder,
      main: false,
      dialect: 'nanoclaw',
    })),
  )
  const daemon = launch(data, { env: { HATCHWAY_DURABILITY: 'process' } })
  try {
    await daemon.ready
    const loads: Load[] = ['a', 'b'].map(prefix => ({
      data,
      folders,
      prefix,
      count: 30_000,
      names: 'hatchway',
    }))
    await Promise.all(loads.map(produce))

    const client = await connect(config)
    const handled = async () => (await client.get('/status', statusAnswer)).handled
    await until('everything is handled', async () => (await handled()) >= 60_000, 120_000)
    expect(await handled()).toBe(60_000)
    await client.close()
    // Finished files are removed when it is calm, and a daemon that is stopped leaves what is left to the next one.
    const isEmpty = () =>
      readdirSync(layout.spool).every(bucket => readdirSync(join(layout.spool, bucket)).length === 0)
    await until('finished files are removed', isEmpty, 120_000)
    await daemon.stop()

    const store = openStore({ path: layout.database, durability: 'process' })
    const found = new Map(store.messages({}).map(({ text, group }) => [text, group]))
    const count = store.messages({}).length
    store.close()
    expect(count).toBe(60_000)
    for (const load of loads) {
      for (let i = 0; i < load.count; i++) {
        const text = `${load.prefix}-${i}`
        if (found.get(text) !== folderOfText(load, i)) expect.fail(`${text} was lost, or is somebody else's`)
      }
    }
    expect(found.size).toBe(60_000)
    expect(readdirSync(layout.errors)).toEqual([])
    for (const folder of folders) {
      expect(readdirSync(join(layout.ipc, folder, 'messages')).filter(name => name !== '.tmp')).toEqual([])
    }
    expect(isEmpty()).toBe(true)
  } finally {
    await daemon.kill()
    rmSync(data, { recursive: true, force: true })
  }
}, 240_000)
