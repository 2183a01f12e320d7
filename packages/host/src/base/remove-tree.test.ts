import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { expect, onTestFinished, test } from 'vitest'
import { removeTree } from './remove-tree.ts'

function open() {
  const folder = mkdtempSync(join(tmpdir(), 'hatchway-tidy-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const [tree, outside] = [join(folder, 'tree'), join(folder, 'outside')]
  mkdirSync(tree)
  mkdirSync(outside)
  return { folder, tree, outside }
}

test('everything goes, locked directories and links included, and nothing that links lead to', async () => {
  const { folder, tree, outside } = open()
  writeFileSync(join(outside, 'precious'), 'x')
  const locked = join(tree, 'a', 'locked')
  mkdirSync(join(locked, 'deeper'), { recursive: true })
  writeFileSync(join(locked, 'deeper', 'file'), 'x')
  symlinkSync(outside, join(tree, 'link'))
  symlinkSync('nowhere', join(locked, 'link'))
  chmodSync(locked, 0)
  chmodSync(tree, 0)
  await removeTree(tree)
  expect(readdirSync(folder)).toEqual(['outside'])
  expect(readdirSync(outside)).toEqual(['precious'])

  symlinkSync(outside, tree)
  await removeTree(tree)
  await removeTree(tree)
  expect(existsSync(tree)).toBe(false)
  expect(readdirSync(outside)).toEqual(['precious'])
})

/** As a container does that still has the directory, wherever it is moved. */
const attack = `
  const { openSync, renameSync } = require('node:fs')
  const { parentPort, workerData: { folder, tree, many } } = require('node:worker_threads')
  const inside = '/proc/self/fd/' + openSync(tree, 'r')
  parentPort.once('message', () => {
    for (let each = many - 1; each >= 0; each--) {
      try {
        renameSync(inside + '/d' + each, folder + '/moved' + each)
        renameSync(folder + '/link' + each, inside + '/d' + each)
      } catch {}
    }
  })
  parentPort.postMessage('ready')`

test('a directory that becomes a link while it is removed leads nowhere', async () => {
  const many = 300
  for (let round = 0; round < 5; round++) {
    const { folder, tree, outside } = open()
    for (let each = 0; each < many; each++) {
      mkdirSync(join(tree, `d${each}`))
      writeFileSync(join(tree, `d${each}`, 'file'), '')
      writeFileSync(join(outside, `precious${each}`), '')
      symlinkSync(outside, join(folder, `link${each}`))
    }
    const attacker = new Worker(attack, { eval: true, workerData: { folder, tree, many } })
    await once(attacker, 'message')
    const over = once(attacker, 'exit')
    attacker.postMessage('go')
    // Somebody may put something there just before the end; that is no reason to fail for us.
    await removeTree(tree).catch(() => {})
    await over
    expect(readdirSync(outside)).toHaveLength(many)
  }
})
