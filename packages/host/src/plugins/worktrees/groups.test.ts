import { execFileSync } from 'node:child_process'
import { existsSync, lstatSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { until } from '../../../../testing/src/until.ts'
import { mirrorPath } from './repositories.ts'
import {
  askInside,
  attempt,
  attemptAsRoot,
  commit,
  drop,
  git,
  type Installation,
  lines,
  makeRepository,
  shared,
  subjects,
} from './testing/testbed.ts'

describe('groups with a repository', () => {
  let installation: Installation
  shared(
    {
      repos: home => {
        const at = (name: string) => join(home, 'ops', name)
        for (const name of ['plain', 'conflict', 'review', 'tested', 'olgas']) makeRepository(at(name))
        execFileSync('chown', ['-R', '4711:4711', at('olgas')])
        makeRepository(at('asked'), at('asked.git'))
        return {
          plain: { path: at('plain') },
          conflict: { path: at('conflict') },
          review: { path: at('review'), policy: 'branch' },
          tested: {
            path: at('tested'),
            test: 'echo "the check looks"; grep -q good a.txt && test ! -e /workspace/ipc && git log -1 --format=%s',
          },
          olgas: { path: at('olgas') },
          asked: { path: at('asked'), remote: 'origin' },
        }
      },
      groups: {
        main: { repo: 'plain' },
        plain: { repo: 'plain' },
        conflict: { repo: 'conflict', containsSecrets: true },
        review: { repo: 'review' },
        tested: { repo: 'tested' },
        olga: { repo: 'olgas' },
        none: {},
        // With a push, secrets are enough for a person to be asked.
        asked: { repo: 'asked', containsSecrets: true },
        pynchy: { repo: 'plain' },
      },
    },
    opened => {
      installation = opened
    },
  )
  const repo = (name: string) => join(installation.home, 'ops', name)

  attempt('commits become the branch, in the operator’s checkout too, and the others are told', async () => {
    const said = await installation.inside(
      'plain',
      'git status | head -1; echo new > new.txt; git add . && git commit -qm "a new $(printf "\\033[31m") file"',
    )
    expect(said).toContain('On branch hatchway/plain')
    const id = installation.ask('plain')
    const answer = await installation.answer('plain', id)
    expect(answer).toMatchObject({ ok: true, result: { merged: true, commits: 1 } })
    expect(git(repo('plain'), 'log', '--format=%an %ae', '-1')).toBe('plain plain@hatchway.invalid')
    expect(subjects(repo('plain'))).toHaveLength(2)
    expect(readFileSync(join(repo('plain'), 'new.txt'), 'utf8')).toBe('new\n')
    expect(git(repo('plain'), 'status', '--porcelain')).toBe('')
    expect(answer.result.revision).toBe(git(repo('plain'), 'rev-parse', 'main'))

    // The same request again is the same answer, and nothing happens.
    rmSync(join(installation.data, 'ipc', 'plain', 'responses', `${id}.json`))
    installation.ask('plain', id)
    expect(await installation.answer('plain', id)).toEqual(answer)
    expect(await installation.sync('plain')).toMatchObject({
      ok: true,
      result: { merged: false, commits: 0 },
    })
    expect(subjects(repo('plain'))).toHaveLength(2)
    expect(
      await installation.inside('plain', 'git status -sb | head -1; git rev-parse origin/main'),
    ).toContain(answer.result.revision)

    // The main group works on the same repository: it hears of it, and what it has goes on top.
    const heard = await installation.inside(
      'main',
      'cat /tmp/prompt; echo more > more.txt; git add . && git commit -qm "more of it"',
    )
    expect(heard).toContain('plain has merged 1 commit into main of plain')
    expect(heard).toContain('a new \\u001b[31m file')
    expect(heard).not.toContain('\u001b[31m file')
    expect(await installation.sync('main')).toMatchObject({ ok: true, result: { merged: true, commits: 1 } })
    expect(subjects(repo('plain'))[0]).toBe('more of it')
    expect(readFileSync(join(repo('plain'), 'more.txt'), 'utf8')).toBe('more\n')
    const outcomes = (await installation.audit())
      .filter(({ decided_by }: { decided_by: string }) => decided_by === 'host')
      .map(({ group, outcome }: { group: string; outcome: string }) => `${group} ${outcome}`)
    expect(outcomes).toEqual(['main merged', 'plain merged'])
  })

  attempt('a conflict is resolved by the agent, from inside, through shells that ask', async () => {
    const ours = lines()
    ours[4] = 'the operator’s fifth line'
    // The agent has its worktree before the operator goes on.
    await installation.inside(
      'conflict',
      'sed -i "s/^line 5$/the fifth line of the agent/" a.txt; git add a.txt; git commit -qm "a better line"; echo x > b.txt; git add b.txt; git commit -qm "and a file"',
    )
    commit(repo('conflict'), 'a.txt', `${ours.join('\n')}\n`, 'the operator’s line')
    const answer = await installation.sync('conflict')
    expect(answer).toMatchObject({ ok: false, error: { code: 'merge_conflict' } })
    expect(answer.error.message).toMatch(/git rebase --continue[\s\S]*\na\.txt$/)
    // Asked again in the middle it says the same, and changes nothing.
    expect((await installation.sync('conflict')).error).toEqual(answer.error)
    const said = await installation.inside(
      'conflict',
      `${askInside}
case "$(command -v bash)" in /opt/hatchway/*) ;; *) echo "these shells do not ask"; exit 1;; esac
bash -c 'git status' | grep 'both modified' || echo "no conflict"
sed -i '/^<<<<<<<\\|^=======$\\|^>>>>>>>/d' a.txt
bash -c 'git add a.txt' && bash -c 'git rebase --continue' && sync`,
    )
    expect(said).toContain('both modified')
    expect(said).toContain('"merged":true')
    expect(subjects(repo('conflict'))).toEqual([
      'and a file',
      'a better line',
      'the operator’s line',
      'the beginning',
    ])
    expect(readFileSync(join(repo('conflict'), 'a.txt'), 'utf8')).toContain(
      'line 4\nthe operator’s fifth line\nthe fifth line of the agent\nline 6',
    )
    // The folder of this group holds secrets: whoever is given the repository has read them from now on.
    expect(JSON.parse(await installation.hatchway('taints', 'list', '--json'))).toContainEqual(
      expect.objectContaining({
        group: 'repo:conflict',
        secret: expect.objectContaining({ by: 'containsSecrets' }),
      }),
    )
  })

  attempt('what a person approves is merged, and nothing that was committed since', async () => {
    const shown = async () => {
      await until(async () => (await approvals()).length === 1)
      const [{ id }] = await approvals()
      return JSON.parse(await installation.hatchway('approvals', 'show', id, '--json'))
    }
    const approvals = async () =>
      JSON.parse(await installation.hatchway('approvals', 'list', '--group', 'asked', '--json'))
    const fieldOf = (approval: { whole: { fields: { name: string; text: string }[] } }, name: string) =>
      approval.whole.fields.find(field => field.name === name)?.text
    await installation.inside('asked', 'echo one > one.txt; git add . && git commit -qm one')
    const tip = git(repo('asked'), 'rev-parse', 'main')
    const first = installation.ask('asked')
    const one = await shown()
    expect(one.can_always).toBe(true)
    expect(
      ['repo', 'branch', 'push_to', 'base', 'commits', 'newest[0]'].map(name => fieldOf(one, name)),
    ).toEqual(['"asked"', '"main"', '"origin"', `"${tip}"`, '1', '"one"'])
    const worktree = join(installation.data, 'worktrees', 'asked')
    expect(fieldOf(one, 'revision')).toBe(`"${git(worktree, 'rev-parse', 'HEAD')}"`)
    // While a person looks at the card; from outside, as the end of another run would withdraw it.
    execFileSync(
      'git',
      ['-c', 'safe.directory=*', 'commit', '--quiet', '--allow-empty', '--message', 'two'],
      {
        cwd: worktree,
        env: {
          ...process.env,
          GIT_ALTERNATE_OBJECT_DIRECTORIES: join(
            mirrorPath({ repos: join(installation.data, 'repos') }, 'asked'),
            'objects',
          ),
        },
      },
    )
    await installation.hatchway('approvals', 'allow', one.id)
    expect(await installation.answer('asked', first)).toMatchObject({
      ok: false,
      error: { code: 'conflict' },
    })
    expect(git(repo('asked'), 'rev-parse', 'main')).toBe(tip)
    const second = installation.ask('asked')
    const again = await shown()
    expect(fieldOf(again, 'revision')).not.toBe(fieldOf(one, 'revision'))
    await installation.hatchway('approvals', 'allow', again.id)
    expect(await installation.answer('asked', second)).toMatchObject({ ok: true, result: { merged: true } })
    expect(subjects(repo('asked'))).toContain('one')
  })

  attempt('a tree that is not clean is refused with what is in it, and so is another branch', async () => {
    await installation.inside('review', 'echo changed >> a.txt; touch "new one.txt"')
    const { error } = await installation.sync('review')
    expect(error.code).toBe('dirty_tree')
    expect(error.message.split('\n').slice(1)).toEqual([' M a.txt', '?? "new one.txt"'])
    await installation.inside('review', 'git checkout -q a.txt; rm "new one.txt"; git checkout -q -b mine')
    expect(await installation.sync('review')).toMatchObject({
      error: { code: 'wrong_state', message: expect.stringContaining('refs/heads/mine') },
    })
    await installation.inside('review', 'git checkout -q hatchway/review; git branch -D mine')
  })

  attempt('with the policy branch the branch stays, and another is there for review', async () => {
    await installation.inside('review', 'echo one > one.txt; git add .; git commit -qm one')
    expect(await installation.sync('review')).toMatchObject({
      ok: true,
      result: { merged: false, commits: 1, branch: 'hatchway/review' },
    })
    expect(subjects(repo('review'))).toEqual(['the beginning'])
    expect(subjects(repo('review'), 'hatchway/review')).toEqual(['one', 'the beginning'])
    await installation.inside('review', 'git commit -q --amend -m "one, after review"')
    expect(await installation.sync('review')).toMatchObject({ ok: true, result: { commits: 1 } })
    expect(subjects(repo('review'), 'hatchway/review')).toEqual(['one, after review', 'the beginning'])
    expect(existsSync(join(repo('review'), 'one.txt'))).toBe(false)
  })

  attempt('a check that fails keeps the commits out, and one that passes lets them in', async () => {
    await installation.inside('tested', 'echo bad >> a.txt; git commit -qam "a bad line"')
    const { error } = await installation.sync('tested')
    expect(error).toMatchObject({
      code: 'check_failed',
      message: expect.stringMatching(/code 1[\s\S]*the check looks/),
    })
    expect(subjects(repo('tested'))).toEqual(['the beginning'])
    await installation.inside('tested', 'echo good >> a.txt; git commit -qam "a good line"')
    expect(await installation.sync('tested')).toMatchObject({
      ok: true,
      result: { merged: true, commits: 2 },
    })
    expect(subjects(repo('tested'))[0]).toBe('a good line')
  })

  attempt('the operator’s unfinished work is not touched', async () => {
    await installation.inside('tested', 'echo good >> b.txt; git add .; git commit -qm "another"')
    writeFileSync(join(repo('tested'), 'a.txt'), 'in the middle of something')
    expect(await installation.sync('tested')).toMatchObject({ ok: false, error: { code: 'wrong_state' } })
    expect(readFileSync(join(repo('tested'), 'a.txt'), 'utf8')).toBe('in the middle of something')
    git(repo('tested'), 'checkout', 'a.txt')
    // Another branch is checked out: only the branch moves.
    git(repo('tested'), 'checkout', '--quiet', '-b', 'olgas-own')
    expect(await installation.hatchway('worktrees', 'sync', 'tested')).toContain('Merged 1 commit')
    expect(subjects(repo('tested'))[0]).toBe('another')
    expect(existsSync(join(repo('tested'), 'b.txt'))).toBe(false)
  })

  attemptAsRoot('what belongs to another user stays theirs', async () => {
    await installation.inside('olga', 'echo new > new.txt; git add . && git commit -qm "a new file"')
    expect(await installation.sync('olga')).toMatchObject({ ok: true, result: { merged: true } })
    const owners = execFileSync('find', [repo('olgas'), '-not', '-uid', '4711'], { encoding: 'utf8' })
    expect(owners).toBe('')
    expect(lstatSync(join(repo('olgas'), 'new.txt')).uid).toBe(4711)
  })

  attempt('the objects of all are read-only inside, and git says what the host told it', async () => {
    const said = await installation.inside(
      'plain',
      `for path in /workspace/project.git /workspace/project.git/objects /workspace/project.git/refs/heads; do
  touch "$path/x" 2>/dev/null && echo "$path can be written to"
done
git push -q origin HEAD:main 2>/dev/null && echo "pushed"
echo '[core]' >> /workspace/project.git/config && echo "settings can be written to"
cat .git/objects/info/alternates; git fetch && echo fetched; ls /workspace`,
    )
    expect(said).not.toMatch(/can be written to|pushed/)
    expect(said).toContain('/workspace/project.git/objects')
    expect(said).toContain('fetched')
  })

  attempt('a group without a repository is told so, and operators see those that have one', async () => {
    expect(await installation.sync('none')).toMatchObject({
      error: { code: 'unavailable', message: 'No repository is configured for this group.' },
    })
    expect(
      await installation.inside(
        'none',
        'true; cd /workspace/group; ls -d /workspace/project* 2>&1 | head -1',
      ),
    ).not.toMatch(/^\/workspace\/project$/m)
    const listed = JSON.parse(await installation.hatchway('worktrees', 'list', '--json'))
    expect(listed).toContainEqual({
      group: 'review',
      repo: 'review',
      branch: 'main',
      policy: 'branch',
      path: join(installation.data, 'worktrees', 'review'),
    })
    await expect(installation.hatchway('worktrees', 'sync', 'none')).rejects.toThrow(
      /No repository is configured/,
    )
  })

  attempt('a group of Pynchy’s has its answer in merge_results', async () => {
    await installation.hatchway(
      ...['groups', 'add', '--folder', 'pynchy', '--jid', 'local:pynchy', '--name', 'Pynchy'],
      ...['--dialect', 'pynchy'],
    )
    drop(join(installation.data, 'ipc', 'pynchy', 'tasks'), {
      ...{ type: 'sync_worktree_to_main', requestId: 'p-1', groupFolder: 'pynchy' },
    })
    const path = join(installation.data, 'ipc', 'pynchy', 'merge_results', 'p-1.json')
    await until(async () => existsSync(path))
    expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({
      success: true,
      message: expect.stringContaining('There is nothing to merge'),
    })
  })
})
