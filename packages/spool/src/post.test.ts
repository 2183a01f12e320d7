import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { describe, expect, it } from 'vitest'
import { post } from './post.ts'
import { run, startChild, temporaryFolder } from './testing/rig.ts'

describe('post', () => {
  it('never shows half a file to another process', async () => {
    const directory = temporaryFolder()
    const reader = startChild(['read', directory, '5000'])
    const text = 'x'.repeat(9000)
    for (let i = 0; i < 5000; i++) post(directory, JSON.stringify({ i, text }))
    expect(JSON.parse(await reader.output)).toEqual({ seen: 5000, broken: [] })
  })

  it('separates writers that have the same process id and use the same name', async () => {
    const directory = temporaryFolder()
    const script = new URL('./testing/rig.process.ts', import.meta.url)
    const ended = [1, 2].map(
      () =>
        new Promise<number>((resolve, reject) => {
          const writer = new Worker(script, {
            argv: ['postSame', directory, 'same.json', '300'],
            stdout: true,
          })
          writer.on('error', reject)
          writer.on('exit', resolve)
        }),
    )
    let running = true
    const all = Promise.all(ended).finally(() => {
      running = false
    })
    while (running) {
      if (readdirSync(directory).includes('same.json')) {
        expect(JSON.parse(readFileSync(join(directory, 'same.json'), 'utf8'))).toHaveProperty('text')
      }
      await new Promise(resolve => setImmediate(resolve))
    }
    expect(await all).toEqual([0, 0])
    expect(readdirSync(join(directory, '.tmp'))).toEqual([])
  })

  it('puts names in the order of the posts', () => {
    const directory = temporaryFolder()
    const posted = Array.from({ length: 500 }, () => post(directory, '{}'))
    expect([...posted].sort()).toEqual(posted)
    expect(readdirSync(directory).filter(name => name.endsWith('.json'))).toEqual(posted)
  })

  it('replaces a link with the same name, and does not touch its target', () => {
    const directory = temporaryFolder()
    const secret = join(temporaryFolder(), 'secret')
    writeFileSync(secret, 'secret')
    symlinkSync(secret, join(directory, 'x.json'))
    symlinkSync(join(directory, 'nowhere'), join(directory, 'y.json'))
    post(directory, 'new', { name: 'x.json' })
    post(directory, 'new', { name: 'y.json' })
    expect(readFileSync(secret, 'utf8')).toBe('secret')
    for (const name of ['x.json', 'y.json']) {
      expect(lstatSync(join(directory, name)).isFile()).toBe(true)
      expect(readFileSync(join(directory, name), 'utf8')).toBe('new')
    }
    expect(readdirSync(directory)).not.toContain('nowhere')
  })

  it('replaces an empty directory with the same name, but not one with content', () => {
    const directory = temporaryFolder()
    mkdirSync(join(directory, 'x.json'))
    mkdirSync(join(directory, 'y.json', 'kept'), { recursive: true })
    post(directory, 'new', { name: 'x.json' })
    expect(readFileSync(join(directory, 'x.json'), 'utf8')).toBe('new')
    expect(() => post(directory, 'new', { name: 'y.json' })).toThrow('ENOTEMPTY')
    expect(readdirSync(join(directory, 'y.json'))).toEqual(['kept'])
  })

  it('refuses a directory that is a link, a file or a FIFO, or is missing', () => {
    const folder = temporaryFolder()
    mkdirSync(join(folder, 'elsewhere'))
    symlinkSync(join(folder, 'elsewhere'), join(folder, 'link'))
    writeFileSync(join(folder, 'file'), '')
    run('mkfifo', join(folder, 'fifo'))
    for (const name of ['link', 'file', 'fifo']) {
      expect(() => post(join(folder, name), '{}')).toThrow(expect.objectContaining({ code: 'ENOTDIR' }))
    }
    expect(() => post(join(folder, 'missing'), '{}')).toThrow(expect.objectContaining({ code: 'ENOENT' }))
    expect(readdirSync(join(folder, 'elsewhere'))).toEqual([])
  })

  it('refuses a staging directory that is a link', () => {
    const directory = temporaryFolder()
    const elsewhere = temporaryFolder()
    symlinkSync(elsewhere, join(directory, '.tmp'))
    const changed = statSync(elsewhere).mtimeMs
    expect(() => post(directory, '{}')).toThrow(expect.objectContaining({ code: 'ENOTDIR' }))
    expect(readdirSync(elsewhere)).toEqual([])
    expect(statSync(elsewhere).mtimeMs).toBe(changed)
    expect(readdirSync(directory)).toEqual(['.tmp'])
  })

  it('creates its staging directory again if it was removed', () => {
    const directory = temporaryFolder()
    post(directory, '{}')
    rmSync(join(directory, '.tmp'), { recursive: true })
    post(directory, '{}')
    expect(readdirSync(join(directory, '.tmp'))).toEqual([])
  })

  it('accepts only a plain file name', () => {
    const directory = join(temporaryFolder(), 'inner')
    mkdirSync(directory)
    for (const name of ['../x.json', 'a/b.json', '/etc/x.json', '.', '..', '', 'a\0.json']) {
      expect(() => post(directory, '{}', { name })).toThrow(expect.objectContaining({ code: 'EINVAL' }))
    }
    expect(readdirSync(join(directory, '..'))).toEqual(['inner'])
    expect(readdirSync(directory)).toEqual([])
  })

  it('leaves nothing behind when it fails', () => {
    const directory = temporaryFolder()
    const staging = temporaryFolder()
    mkdirSync(join(directory, 'x.json', 'in the way'), { recursive: true })
    expect(() => post(directory, '{}', { name: 'x.json', staging })).toThrow()
    expect(() => post(directory, '{}', { name: 'x.json' })).toThrow()
    expect(readdirSync(staging)).toEqual([])
    expect(readdirSync(join(directory, '.tmp'))).toEqual([])
  })

  it('writes bytes with the requested mode, and no other file', () => {
    const directory = temporaryFolder()
    const staging = temporaryFolder()
    const content = new Uint8Array([0, 255, 254])
    const name = post(directory, content, { staging, mode: 0o600, sync: true })
    expect(readdirSync(directory)).toEqual([name])
    expect(new Uint8Array(readFileSync(join(directory, name)))).toEqual(content)
    expect(statSync(join(directory, name)).mode & 0o777).toBe(0o600)
  })

  it.skipIf(process.getuid?.() !== 0)('gives the file to the requested owner (needs root)', () => {
    const directory = temporaryFolder()
    const name = post(directory, '{}', { owner: { uid: 65534, gid: 65533 } })
    expect(statSync(join(directory, name))).toMatchObject({ uid: 65534, gid: 65533 })
  })
})
