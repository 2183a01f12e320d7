import { execFileSync } from 'node:child_process'
import { chmodSync, lstatSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { attempt, git, type Installation, makeRepository, shared } from './testing/testbed.ts'

describe('a hostile worktree', () => {
  let installation: Installation
  shared(
    {
      repos: home => {
        makeRepository(join(home, 'ops', 'hostile'))
        return { hostile: { path: join(home, 'ops', 'hostile'), test: 'true' } }
      },
      groups: { main: {}, hostile: { repo: 'hostile' } },
    },
    opened => {
      installation = opened
      mkdirSync(join(installation.home, 'canaries'))
      chmodSync(join(installation.home, 'canaries'), 0o777)
      writeFileSync(join(installation.home, 'canaries', 'secret.txt'), secret)
    },
  )
  const secret = 'nobody may read this'
  const repo = () => join(installation.home, 'ops', 'hostile')
  /** what shows that a command has run on the host; inside there is no such directory */
  const touch = (name: string) => `sh -c 'touch ${join(installation.home, 'canaries', name)}'`
  const canaries = () =>
    execFileSync('ls', ['-A', join(installation.home, 'canaries')], { encoding: 'utf8' })
      .trim()
      .split('\n')
  const isUnharmed = () => {
    expect(canaries()).toEqual(['secret.txt'])
    expect(git(repo(), 'fsck', '--strict')).not.toContain('error')
    expect(git(repo(), 'log', '-p', 'main')).not.toContain(secret)
  }
  const begin = async (script: string) => {
    rmSync(join(installation.data, 'worktrees', 'hostile'), { recursive: true, force: true })
    return installation.inside('hostile', script)
  }
  /** Says whatever it likes in the name of git: a monitor of the file system, which git status starts. */
  const forging = (script: string) => `
cat > .git/forge <<'EOF'
#!/bin/sh
${script}
kill -9 $PPID
EOF
chmod +x .git/forge
git config core.fsmonitor "$PWD/.git/forge"
`

  attempt('settings, hooks and filters run nothing on the host', async () => {
    const programs = ['core.fsmonitor', 'core.sshCommand', 'core.pager', 'core.editor', 'core.gitProxy']
    const drivers = ['diff.external', 'diff.x.textconv', 'merge.x.driver', 'gpg.program', 'credential.helper']
    const filters = ['filter.x.clean', 'filter.x.smudge']
    const hooks =
      'pre-rebase post-rewrite post-checkout post-merge pre-push reference-transaction post-index-change update'
    await begin(`
echo '* filter=x diff=x merge=x' > .gitattributes; git add .; git commit -qm "attributes"
for hook in ${hooks}; do
  mkdir -p .git/hooks; printf '#!/bin/sh\\n%s\\n:\\n' "${touch('hook')}" > .git/hooks/$hook; chmod +x .git/hooks/$hook
done
${[...programs, ...drivers].map(name => `git config ${name} "${touch(name)}"`).join('\n')}
${filters.map(name => `git config ${name} "${touch(name)} 2>/dev/null; cat"`).join('\n')}
git config core.hooksPath .git/hooks; true`)
    expect(await installation.sync('hostile')).toMatchObject({ ok: true, result: { merged: true } })
    isUnharmed()
    // That the canaries would have shown it: this is what a host would do that runs git there.
    git(join(installation.data, 'worktrees', 'hostile'), 'status')
    expect(canaries()).toContain('core.fsmonitor')
    for (const name of canaries())
      if (name !== 'secret.txt') rmSync(join(installation.home, 'canaries', name))

    for (const setting of [
      `remote.origin.uploadpack "${touch('uploadpack')}"`,
      `url.ext::${touch('url').replaceAll(' ', '% ')}.insteadOf /workspace`,
      `core.worktree ${join(installation.home, 'canaries')}`,
      `include.path ${join(installation.home, 'canaries', 'secret.txt')}`,
      `extensions.partialClone "ext::${touch('partial').replaceAll(' ', '% ')}"`,
    ]) {
      await begin(
        `echo x >> x.txt; git add .; git commit -qm x; git config protocol.ext.allow always; git config ${setting}; true`,
      )
      await installation.sync('hostile')
      isUnharmed()
    }
  })

  attempt.each([
    ['a file that names another repository', () => `echo "gitdir: ${repo()}/.git" > .git`],
    ['a link to another repository', () => `ln -s ${repo()}/.git .git`],
    ['a link to the mirror', () => 'ln -s /workspace/project.git .git'],
    ['a pipe', () => 'mkfifo .git'],
  ])('.git as %s is refused', async (_, script) => {
    await begin(`mv .git /tmp/git; rm -rf .git; ${script()}`)
    expect(await installation.sync('hostile')).toMatchObject({ ok: false, error: { code: 'service_failed' } })
    isUnharmed()
  })

  attempt('objects that are links to elsewhere bring nothing of the host', async () => {
    const file = join(installation.home, 'canaries', 'secret.txt')
    await begin(`
cat /proc/sys/kernel/random/uuid > x.txt; git add .; git commit -qm x
id=$(git rev-parse HEAD:x.txt); object=.git/objects/$(echo $id | cut -c1-2)/$(echo $id | cut -c3-)
rm -f $object; ln -s ${file} $object; true`)
    expect((await installation.sync('hostile')).ok).toBe(false)
    await begin(`
cat /proc/sys/kernel/random/uuid > x.txt; git add .; git commit -qm x
rm -rf .git/objects/info; ln -s ${join(installation.data, 'state')} .git/objects/info; true`)
    expect((await installation.sync('hostile')).ok).toBe(false)
    await begin(
      `ln -s ${file} link.never; ln -s ${installation.home} home.never; git add .; git commit -qm "links"`,
    )
    expect(await installation.sync('hostile')).toMatchObject({ ok: true, result: { merged: true } })
    expect(lstatSync(join(repo(), 'link.never')).isSymbolicLink()).toBe(true)
    isUnharmed()
  })

  attempt('a submodule is a line in a file, and nothing is fetched for it', async () => {
    await begin(`
printf '[submodule "a"]\\n\\tpath = a\\n\\turl = ext::${touch('submodule')}\\n' > .gitmodules
git add .gitmodules; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),a; git commit -qm "a submodule"; mkdir -p a; true`)
    await installation.sync('hostile')
    isUnharmed()
  })

  attempt('what is said in the name of git is not believed', async () => {
    const base = git(repo(), 'rev-parse', 'main')
    const said = async (report: string, more = '') => {
      await begin(forging(`{ ${report}; ${more || 'true'}; } >&3`))
      return installation.sync('hostile')
    }
    const header = (head: string) => `printf 'state ready\\nbase ${base}\\nhead ${head}\\n\\n'`
    for (const answer of [
      // a revision that is older than the branch, and one that does not exist
      await said(header(git(repo(), 'rev-parse', 'main~1'))),
      await said(header('1'.repeat(40))),
      await said(header('--upload-pack=evil')),
      await said(header(base), 'head -c 100000 /dev/urandom'),
      await said("printf 'state conflict\\nfile \\033[31mred\\n\\n'"),
      await said('yes "file x" | head -c 10000000'),
      await said('head -c 10000000 /dev/zero'),
      await said(
        header('1'.repeat(40)),
        'printf "PACK\\000\\000\\000\\002\\377\\377\\377\\377"; head -c 300000000 /dev/zero',
      ),
    ]) {
      expect(answer.ok).toBe(false)
      // Of a character that is not there to be seen only its name is left: a backslash, not the character.
      expect(JSON.stringify(answer).replaceAll('\\\\', '')).not.toContain('\\u001b')
      expect(JSON.stringify(answer).length).toBeLessThan(20_000)
    }
    expect(git(repo(), 'rev-parse', 'main')).toBe(base)
    isUnharmed()
    expect(await installation.say('are you there?')).not.toBe('')
  })
})
