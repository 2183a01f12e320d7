import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { loadConfig } from './load.ts'

const loaded = (config: object) => {
  const home = mkdtempSync(join(tmpdir(), 'hatchway-repos-'))
  onTestFinished(() => rmSync(home, { recursive: true, force: true }))
  const file = join(home, 'hatchway.config.mjs')
  writeFileSync(file, `export default ${JSON.stringify(config)}`)
  return loadConfig({ file, env: {}, cwd: home })
}

test('a group may work on a repository that is named, and on no other', async () => {
  const repos = { site: { path: '/srv/site' } }
  expect((await loaded({ repos, groups: { work: { repo: 'site' } } })).groups.work?.repo).toBe('site')
  await expect(loaded({ repos, groups: { work: { repo: 'sites' } } })).rejects.toThrow(
    /groups\.work\.repo.*"sites", which repos does not name; there are: site\./,
  )
  await expect(loaded({ groups: { work: { repo: 'constructor' } } })).rejects.toThrow(/there are: none\./)
})

test.each([
  ['a relative path', { path: 'site' }],
  ['a branch that is an option', { path: '/srv/site', branch: '--upload-pack=x' }],
  ['a remote that is an address', { path: '/srv/site', remote: 'ext::sh -c x' }],
  ['a policy that is none', { path: '/srv/site', policy: 'push' }],
])('%s is refused', async (_, repo) => {
  await expect(loaded({ repos: { site: repo } })).rejects.toThrow(/repos\.site/)
})
