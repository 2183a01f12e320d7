import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createRemover } from './remove.ts'
import { temporaryFolder } from './testing/rig.ts'

/** A crowded machine may need longer to start a thread than a host that stops would wait. */
const removerThat = (report: (message: string) => void) => createRemover(report, { closeTimeoutMs: 60_000 })

function make(folder: string, count: number): string[] {
  const paths = Array.from({ length: count }, (_, i) => join(folder, String(i)))
  for (const path of paths) writeFileSync(path, '')
  return paths
}

describe('the remover', () => {
  it('removes a few files immediately', async () => {
    const folder = temporaryFolder()
    const remover = removerThat(message => expect.unreachable(message))
    remover.remove(make(folder, 16))
    expect(readdirSync(folder)).toEqual([])
    await remover.close()
  })

  it('removes many files in the background, and resolves when they are gone', async () => {
    const folder = temporaryFolder()
    const remover = removerThat(message => expect.unreachable(message))
    const paths = make(folder, 600)
    for (let i = 0; i < paths.length; i += 60) remover.remove(paths.slice(i, i + 60))
    await remover.close()
    expect(readdirSync(folder)).toEqual([])
  })

  it('ignores files that are already gone', async () => {
    const folder = temporaryFolder()
    const remover = removerThat(message => expect.unreachable(message))
    const paths = make(folder, 100)
    remover.remove(paths)
    remover.remove(paths)
    remover.remove(paths.slice(0, 3))
    await remover.close()
    expect(readdirSync(folder)).toEqual([])
  })

  it.each([1, 100])('reports a file among %i that cannot be removed, and removes the others', async count => {
    const folder = temporaryFolder()
    const messages: string[] = []
    const remover = removerThat(message => messages.push(message))
    const stuck = join(folder, 'stuck')
    mkdirSync(stuck)
    remover.remove([...make(folder, count), stuck])
    await remover.close()
    expect(messages).toEqual([expect.stringContaining(stuck)])
    expect(readdirSync(folder)).toEqual(['stuck'])
  })

  it('finishes its files before it closes, and still removes files afterwards', async () => {
    const folder = temporaryFolder()
    const remover = removerThat(message => expect.unreachable(message))
    remover.remove(make(folder, 500))
    await remover.close()
    expect(readdirSync(folder)).toEqual([])
    const late = make(folder, 100)
    remover.remove(late)
    expect(late.some(path => existsSync(path))).toBe(false)
    await remover.close()
  })
})
