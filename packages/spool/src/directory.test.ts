import { mkdirSync, readdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openDirectory, within } from './directory.ts'
import { run, temporaryFolder } from './testing/rig.ts'

describe('an open directory', () => {
  it.runIf(process.platform === 'linux')(
    'stays the one that was opened, even if its name is taken by another',
    () => {
      const folder = temporaryFolder()
      const [path, elsewhere] = [join(folder, 'a'), join(folder, 'b')]
      mkdirSync(path)
      mkdirSync(elsewhere)
      const directory = openDirectory(path)
      if (typeof directory === 'string') throw new Error(directory)
      renameSync(path, `${path}-moved`)
      symlinkSync(elsewhere, path)
      writeFileSync(within(directory, 'x'), '')
      writeFileSync(within(directory, Buffer.from([0xff])), '')
      expect(readdirSync(directory.path)).toHaveLength(2)
      expect(readdirSync(`${path}-moved`)).toHaveLength(2)
      expect(readdirSync(elsewhere)).toEqual([])
      directory.close()
    },
  )

  it('is never a link, a file or a FIFO', () => {
    const folder = temporaryFolder()
    mkdirSync(join(folder, 'there'))
    symlinkSync('there', join(folder, 'link'))
    symlinkSync('nowhere', join(folder, 'dangling'))
    writeFileSync(join(folder, 'file'), '')
    run('mkfifo', join(folder, 'fifo'))
    for (const name of ['link', 'dangling', 'file', 'fifo', 'file/below']) {
      expect(openDirectory(join(folder, name)), name).toBe('not_a_directory')
    }
    expect(openDirectory(join(folder, 'missing'))).toBe('missing')
  })
})
