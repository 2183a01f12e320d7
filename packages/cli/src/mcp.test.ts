import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { until } from '../../testing/src/until.ts'
import { openCommand } from './testing.ts'

const everything = fileURLToPath(import.meta.resolve('@modelcontextprotocol/server-everything/dist/index.js'))

test('a server is added with its key, listed, tested and removed; what it is must be said where nobody can be asked', async () => {
  const { run, json, host } = await openCommand('mcp')
  const place = mkdtempSync(join(tmpdir(), 'hatchway-mcp-'))
  onTestFinished(() => rmSync(place, { recursive: true }))
  const keyFile = join(place, 'key')
  writeFileSync(keyFile, 'the-key-itself\n')
  const program = ['--', process.execPath, everything]

  expect(await run('add', 'odd', ...program)).toMatchObject({
    code: 64,
    out: expect.stringMatching(/echo +odd_echo/),
    err: expect.stringContaining('--internet yes or --internet no'),
  })
  expect(await json('list')).toEqual([])

  const about = ['--internet', 'no', '--private', 'no', '--groups', 'family', '--env', `KEY=@${keyFile}`]
  const added = await run('add', 'odd', ...about, '--tools', 'echo', '--tools', 'get-env', ...program)
  expect(added).toMatchObject({
    code: 0,
    out: expect.stringContaining(
      'odd is lent to family, as a server that does not reach the internet and does not hold private data.',
    ),
  })
  const catalogue = host.services()?.catalogue
  await until(() => catalogue?.find('odd_echo') !== undefined)
  expect(catalogue?.find('odd_get-sum')).toBeUndefined()
  expect(catalogue?.services().map(({ name }) => name)).toContain('mcp:odd')

  const listed = await run('list', '--json')
  expect(JSON.parse(listed.out)).toMatchObject([
    { name: 'odd', added: true, up: true, tools: 2, groups: ['family'] },
  ])
  expect(added.out + listed.out).not.toContain('the-key-itself')
  expect((await run('test', 'odd')).out).toContain('odd answers.')
  expect(await run('remove', 'odd')).toMatchObject({ code: 0, out: 'odd is removed.\n' })
  expect(catalogue?.find('odd_echo')).toBeUndefined()
  expect(await run('remove', 'odd')).toMatchObject({ code: 1, err: expect.stringContaining('was not added') })
})
