import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'

const script = join(import.meta.dirname, 'release.ts')
const configuration = join(import.meta.dirname, '..', '.changeset')

/** Published are the lines of a file; what the file `refused` names cannot be published. Everything else is the real npm. */
const npm = `#!/bin/sh
here=$(dirname "$0")
case "$1" in
  view) grep -qx "$2" "$here/published" 2>/dev/null && echo 1 || { echo E404 >&2; exit 1; } ;;
  whoami) echo somebody ;;
  publish)
    name=$(tar -xzOf "$2" package/package.json | sed -n 's/.*"name": *"\\([^"]*\\)".*/\\1/p')
    version=$(tar -xzOf "$2" package/package.json | sed -n 's/.*"version": *"\\([^"]*\\)".*/\\1/p')
    grep -qx "$name" "$here/refused" 2>/dev/null && exit 1
    echo "$*" | sed 's/.*tgz //' >> "$here/flags"
    echo "$name@$version" >> "$here/published" ;;
  *) PATH=\${PATH#*:} exec npm "$@" ;;
esac
`

/** Packs each of them as it is. */
const pack = `
import { execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
mkdirSync(process.argv[2], { recursive: true })
for (const folder of ['spool', 'cli'])
  process.stdout.write(execFileSync('npm', ['pack', '--silent', './packages/' + folder, '--pack-destination', process.argv[2]]))
`

const needed = ['LICENSE', 'README.md', 'THIRD-PARTY-LICENSES.txt', 'sbom.cdx.json']

/** A project of two packages in a repository of its own, whose version 0.1.0 is described in the changelog. */
function project() {
  const root = mkdtempSync(join(tmpdir(), 'hatchway-released-'))
  const bin = mkdtempSync(join(tmpdir(), 'hatchway-npm-'))
  onTestFinished(() => {
    for (const folder of [root, bin]) rmSync(folder, { recursive: true })
  })
  writeFileSync(join(bin, 'npm'), npm)
  chmodSync(join(bin, 'npm'), 0o755)
  const identity = { GIT_AUTHOR_NAME: 'A', GIT_AUTHOR_EMAIL: 'a@example.org' }
  const env = {
    ...process.env,
    ...identity,
    GIT_COMMITTER_NAME: 'A',
    GIT_COMMITTER_EMAIL: 'a@example.org',
    PATH: `${bin}${delimiter}${process.env.PATH}`,
    npm_config_registry: 'http://127.0.0.1:9/',
  }
  const run = (program: string, ...args: string[]) =>
    spawnSync(program, args, { cwd: root, env, encoding: 'utf8' })
  const write = (path: string, text: string) => writeFileSync(join(root, path), text)
  const commit = () => {
    run('git', 'add', '--all')
    expect(run('git', 'commit', '--quiet', '--message', 'A change')).toMatchObject({ status: 0 })
  }

  for (const folder of ['scripts', 'packages/cli', 'packages/spool'])
    mkdirSync(join(root, folder), { recursive: true })
  const manifest = (name: string, more: object) =>
    JSON.stringify({ name, version: '0.1.0', license: 'MIT', ...more }, null, 2)
  const dependencies = { '@hatchway/spool': '0.1.0' }
  write('package.json', manifest('all', { private: true, workspaces: ['packages/*'] }))
  write('packages/cli/package.json', manifest('hatchway', { dependencies }))
  write('packages/spool/package.json', manifest('@hatchway/spool', {}))
  for (const file of needed) for (const name of ['cli', 'spool']) write(`packages/${name}/${file}`, 'text')
  write('packages/cli/CHANGELOG.md', '# hatchway\n\n## 0.1.0\n\nThe first.\n')
  write('scripts/pack.ts', pack)
  cpSync(configuration, join(root, '.changeset'), { recursive: true, filter: path => !path.endsWith('.md') })
  run('git', 'init', '--quiet', '--initial-branch=main')
  expect(run('npm', 'install', '--package-lock-only', '--offline')).toMatchObject({ status: 0 })
  commit()

  const refused = join(bin, 'refused')
  return {
    root,
    release: (...args: string[]) => run(process.execPath, script, ...args),
    git: (...args: string[]) => run('git', ...args).stdout.trim(),
    published: () =>
      existsSync(join(bin, 'published'))
        ? readFileSync(join(bin, 'published'), 'utf8').trim().split('\n')
        : [],
    /** with which options each package was published */
    flags: () => readFileSync(join(bin, 'flags'), 'utf8').trim().split('\n'),
    env,
    refuse: (name: string) => writeFileSync(refused, `${name}\n`),
    accept: () => rmSync(refused),
    write,
    read: (path: string) => readFileSync(join(root, path), 'utf8'),
    change(name: string, size: string, text: string) {
      write(`.changeset/${name}.md`, `---\n"hatchway": ${size}\n---\n\n${text}\n`)
      commit()
    },
    commit,
  }
}

test('a dry run shows the next version, the notes and each package, and changes nothing', () => {
  const { release, change, git, published } = project()
  change('one', 'minor', 'Agents can dance.')
  const before = git('rev-parse', 'HEAD')
  const { status, stdout, stderr } = release('--dry-run')
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  expect(stdout).toContain('Version 0.2.0\n\n## 0.2.0\n\n### Minor Changes\n\n- Agents can dance.\n')
  expect(stdout).toMatch(/^@hatchway\/spool 0\.2\.0: 5 files, 1 kB packed, 1 kB unpacked$/m)
  expect(stdout).toMatch(/^hatchway 0\.2\.0: 6 files, /m)
  expect(stdout).not.toContain('Not ready')
  expect(git('rev-parse', 'HEAD')).toBe(before)
  expect(git('status', '--porcelain') + git('tag') + git('branch', '--format=%(refname:short)')).toBe('main')
  expect(git('worktree', 'list').split('\n')).toHaveLength(1)
  expect(published()).toEqual([])
})

test('a release has one version for all, one changelog, a commit and a tag with the notes', () => {
  const { release, change, git, published, read } = project()
  change('one', 'patch', 'Agents can dance.')
  change('two', 'minor', 'Agents can sing.')
  expect(release('--yes')).toMatchObject({ status: 0, stderr: '' })
  expect(published()).toEqual(['@hatchway/spool@0.2.0', 'hatchway@0.2.0'])
  expect(git('log', '-1', '--format=%s')).toBe('Release 0.2.0')
  expect(git('tag', '--list', '--format=%(refname:short) %(contents)')).toContain('- Agents can sing.')
  expect(git('rev-parse', 'v0.2.0^{commit}')).toBe(git('rev-parse', 'HEAD'))
  expect(git('ls-files', '*CHANGELOG.md', '.changeset/*.md')).toBe('packages/cli/CHANGELOG.md')
  expect(read('packages/cli/CHANGELOG.md')).toMatch(/## 0\.2\.0.*sing.*dance.*## 0\.1\.0\n\nThe first\./s)
  expect(JSON.parse(read('packages/cli/package.json')).dependencies).toEqual({ '@hatchway/spool': '0.2.0' })
  expect(JSON.parse(read('package-lock.json'))).toMatchObject({
    version: '0.2.0',
    packages: { 'packages/spool': { version: '0.2.0' } },
  })
  expect(git('status', '--porcelain')).toBe('')
  expect(release('--yes')).toMatchObject({ status: 0, stdout: expect.stringContaining('Nothing to release') })
})

test('the first version needs no changeset', () => {
  const { release, git, published } = project()
  expect(release('--yes')).toMatchObject({ status: 0, stderr: '' })
  expect(published()).toEqual(['@hatchway/spool@0.1.0', 'hatchway@0.1.0'])
  expect(git('tag')).toBe('v0.1.0')
})

test('after a failure in the middle, the same command publishes what is missing', () => {
  const { release, change, git, published, refuse, accept } = project()
  change('one', 'minor', 'Agents can dance.')
  refuse('hatchway')
  const first = release('--yes')
  expect(first).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('hatchway is not published. Repeat this'),
  })
  expect(published()).toEqual(['@hatchway/spool@0.2.0'])
  const tagged = git('rev-parse', 'HEAD')
  accept()
  expect(release('--yes')).toMatchObject({
    status: 0,
    stdout: expect.stringContaining('(already published)'),
  })
  expect(published()).toEqual(['@hatchway/spool@0.2.0', 'hatchway@0.2.0'])
  expect(git('rev-parse', 'HEAD', 'v0.2.0^{commit}').split('\n')).toEqual([tagged, tagged])
})

test('a version that is only partly published is finished from its own commit before the next', () => {
  const { release, change, git, published, refuse, accept } = project()
  refuse('hatchway')
  expect(release('--yes').status).toBe(1)
  accept()
  change('one', 'minor', 'Agents can dance.')
  const { status, stdout } = release('--yes')
  expect(status).toBe(1)
  expect(stdout).toContain('v0.1.0 is only partly published. Finish it first: git checkout v0.1.0')
  git('checkout', '--quiet', 'v0.1.0')
  expect(release('--yes').status).toBe(0)
  expect(published()).toEqual(['@hatchway/spool@0.1.0', 'hatchway@0.1.0'])
})

test('what is not ready is named, and not released', () => {
  const { root, release, git, published, write, commit } = project()
  mkdirSync(join(root, 'packages/spool/dist/node_modules'), { recursive: true })
  write('packages/spool/dist/node_modules/sdk.js', '')
  const files = needed.filter(file => file !== 'sbom.cdx.json')
  write(
    'packages/cli/package.json',
    JSON.stringify({ name: 'hatchway', version: '0.1.0', license: 'MIT', files }),
  )
  expect(release('--yes')).toMatchObject({
    status: 1,
    stderr: 'release: There are changes that are not committed.\n',
  })
  expect(release('--dry-run').stdout).toContain('Not ready:\n  There are changes that are not committed.')
  commit()
  git('checkout', '--quiet', '-b', 'other')
  const { status, stdout } = release('--yes')
  expect(status).toBe(1)
  expect(stdout).toContain('Releases are made on the branch main.')
  expect(stdout).toContain('hatchway lacks sbom.cdx.json')
  expect(stdout).toContain('@hatchway/spool contains installed packages: dist/node_modules/sdk.js')
  expect(published()).toEqual([])
  expect(git('tag')).toBe('')
})

test('without a terminal it does not ask, and changes nothing', () => {
  const { release, git, published } = project()
  expect(release()).toMatchObject({
    status: 1,
    stderr: 'release: To release without being asked, add --yes.\n',
  })
  expect(published()).toEqual([])
  expect(git('tag')).toBe('')
})

test('a proof of origin is given where CI can give it and the package names its repository', () => {
  const { release, env, flags, write, read, commit, change } = project()
  Object.assign(env, { SIGSTORE_ID_TOKEN: 'of CI' })
  expect(release('--yes')).toMatchObject({ status: 0, stderr: '' })
  expect(flags()).toEqual(['--access=public', '--access=public'])
  const manifest = JSON.parse(read('packages/cli/package.json'))
  write(
    'packages/cli/package.json',
    JSON.stringify({ ...manifest, repository: 'https://example.org/it.git' }),
  )
  commit()
  change('one', 'minor', 'Agents can dance.')
  expect(release('--yes')).toMatchObject({ status: 0 })
  expect(flags().slice(2)).toEqual(['--access=public --provenance', '--access=public --provenance'])
})
