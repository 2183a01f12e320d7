import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { createRandom } from '../../../../testing/src/random.ts'
import {
  attempt,
  commit,
  git,
  type Installation,
  makeRepository,
  shared,
  subjects,
} from './testing/testbed.ts'

describe('a repository with a remote', () => {
  let installation: Installation
  shared(
    {
      repos: home => {
        const at = (name: string) => join(home, 'ops', name)
        const remote = (name: string) => join(home, 'remotes', name)
        for (const name of ['race', 'moved', 'review', 'killed']) makeRepository(at(name), remote(name))
        const path = (name: string) => ({ path: at(name), remote: 'origin' })
        return {
          race: path('race'),
          moved: path('moved'),
          review: { ...path('review'), policy: 'branch' },
          killed: path('killed'),
        }
      },
      groups: {
        main: {},
        one: { repo: 'race' },
        two: { repo: 'race' },
        three: { repo: 'race' },
        moved: { repo: 'moved' },
        review: { repo: 'review' },
        killed: { repo: 'killed' },
      },
    },
    opened => {
      installation = opened
    },
  )
  const repo = (name: string) => join(installation.home, 'ops', name)
  const remote = (name: string) => join(installation.home, 'remotes', name)

  attempt('groups that sync at once all end right, and hear of each other', async () => {
    const groups = ['one', 'two', 'three']
    for (const group of groups) {
      await installation.inside(
        group,
        `echo ${group} > ${group}.txt; git add .; git commit -qm "from ${group}"`,
      )
    }
    const answers = await Promise.all(groups.map(group => installation.sync(group)))
    for (const answer of answers)
      expect(answer).toMatchObject({ ok: true, result: { merged: true, commits: 1 } })
    expect(subjects(remote('race')).toSorted()).toEqual([
      'from one',
      'from three',
      'from two',
      'the beginning',
    ])
    expect(git(repo('race'), 'rev-parse', 'main')).toBe(git(remote('race'), 'rev-parse', 'main'))
    for (const group of groups) {
      expect(readFileSync(join(repo('race'), `${group}.txt`), 'utf8')).toBe(`${group}\n`)
      const heard = await installation.inside(group, 'grep -o "[a-z]* has merged" /tmp/prompt')
      for (const other of groups) expect(heard.includes(`${other} has merged`)).toBe(other !== group)
    }
  })

  attempt(
    'a remote that has moved is gone after, and one that the operator has not kept up with is not harmed',
    async () => {
      await installation.inside('moved', 'echo x > x.txt; git add .; git commit -qm "the agent’s"')
      const elsewhere = join(installation.home, 'elsewhere')
      git(installation.home, 'clone', '--quiet', remote('moved'), elsewhere)
      commit(elsewhere, 'y.txt', 'y\n', 'somebody’s')
      git(elsewhere, 'push', '--quiet', 'origin', 'main')
      expect(await installation.sync('moved')).toMatchObject({
        ok: true,
        result: { merged: true, commits: 1 },
      })
      expect(subjects(remote('moved'))).toEqual(['the agent’s', 'somebody’s', 'the beginning'])
      expect(subjects(repo('moved'))).toEqual(subjects(remote('moved')))

      // What the operator has not pushed is not pushed for him.
      commit(repo('moved'), 'z.txt', 'z\n', 'not to be pushed yet')
      await installation.inside('moved', 'echo 2 > x.txt; git commit -qam "the agent’s second"')
      expect(await installation.sync('moved')).toMatchObject({
        error: {
          code: 'wrong_state',
          message: expect.stringContaining('has commits that origin does not have'),
        },
      })
      expect(subjects(remote('moved'))).toHaveLength(3)
      git(repo('moved'), 'push', '--quiet', 'origin', 'main')
      expect(await installation.sync('moved')).toMatchObject({ ok: true, result: { merged: true } })
      expect(subjects(remote('moved'))[0]).toBe('the agent’s second')
    },
  )

  attempt(
    'a branch for review is pushed, replaced, and not put over what somebody else did to it',
    async () => {
      const branch = 'hatchway/review'
      await installation.inside('review', 'echo one > one.txt; git add .; git commit -qm one')
      expect(await installation.sync('review')).toMatchObject({ ok: true, result: { merged: false, branch } })
      await installation.inside('review', 'git commit -q --amend -m "one, better"')
      expect(await installation.sync('review')).toMatchObject({ ok: true })
      expect(subjects(remote('review'), branch)).toEqual(['one, better', 'the beginning'])
      expect(subjects(remote('review'))).toEqual(['the beginning'])

      const elsewhere = join(installation.home, 'reviewer')
      git(installation.home, 'clone', '--quiet', '--branch', branch, remote('review'), elsewhere)
      commit(elsewhere, 'y.txt', 'y\n', 'a reviewer’s')
      git(elsewhere, 'push', '--quiet', 'origin', branch)
      await installation.inside('review', 'git commit -q --amend -m "one, best"')
      expect(await installation.sync('review')).toMatchObject({ error: { code: 'wrong_state' } })
      expect(subjects(remote('review'), branch)[0]).toBe('a reviewer’s')
      git(remote('review'), 'branch', '-D', branch)
      expect(await installation.sync('review')).toMatchObject({ ok: true })
      expect(subjects(remote('review'), branch)[0]).toBe('one, best')
    },
  )

  attempt.each(['sync_examined', 'sync_recorded', 'sync_pushed', 'sync_delivered', 'sync_told'])(
    'a host that is killed at %s has merged once, and answers, when it is there again',
    async step => {
      await installation.inside('killed', `echo ${step} > ${step}.txt; git add .; git commit -qm "${step}"`)
      await installation.daemon()?.stop()
      const faulty = installation.launchFaulty(step)
      await faulty.ready
      const id = installation.ask('killed')
      expect(await faulty.exited).toMatchObject({ signal: 'SIGKILL' })
      await installation.up()
      expect(await installation.answer('killed', id)).toMatchObject({
        ok: true,
        result: { merged: true, commits: 1, revision: git(remote('killed'), 'rev-parse', 'main') },
      })
      expect(subjects(remote('killed')).filter(subject => subject === step)).toHaveLength(1)
      expect(git(repo('killed'), 'rev-parse', 'main')).toBe(git(remote('killed'), 'rev-parse', 'main'))
      expect(git(repo('killed'), 'status', '--porcelain')).toBe('')
    },
  )

  attempt('locks and a rebase that a killed script left do not keep the next sync from merging', async () => {
    await installation.inside('killed', 'echo x > locks.txt; git add .; git commit -qm "behind locks"')
    git(installation.home, 'clone', '--quiet', remote('killed'), join(installation.home, 'ahead'))
    commit(join(installation.home, 'ahead'), 'ahead.txt', 'ahead\n', 'somebody is ahead')
    git(join(installation.home, 'ahead'), 'push', '--quiet', 'origin', 'main')
    // As it is after a kill in the middle of a rebase: nothing has been picked yet.
    await installation.inside(
      'killed',
      [
        'GIT_SEQUENCE_EDITOR="sed -i 1ibreak" git rebase -q -i HEAD~1',
        'echo rebase > .git/hatchway-script',
        'touch .git/index.lock .git/config.lock .git/HEAD.lock .git/refs/remotes/origin/main.lock',
      ].join('; '),
    )
    await installation.daemon()?.kill()
    await installation.up()
    const answer = await installation.sync('killed')
    expect(answer, JSON.stringify(answer)).toMatchObject({ ok: true, result: { merged: true, commits: 1 } })
    expect(subjects(remote('killed')).slice(0, 2)).toEqual(['behind locks', 'somebody is ahead'])
  })

  attempt('and one that is killed at any moment', async () => {
    const seed = Number(process.env.HATCHWAY_SEED ?? Date.now() % 100_000)
    console.log(`seed ${seed}`)
    const random = createRandom(seed)
    for (let round = 0; round < 4; round++) {
      const name = `round ${round}`
      await installation.inside('killed', `echo x > "${name}"; git add .; git commit -qm "${name}"`)
      const id = installation.ask('killed')
      await new Promise(resolve => setTimeout(resolve, random.below(700)))
      await installation.daemon()?.kill()
      await installation.up()
      const answer = await installation.answer('killed', id)
      expect(answer, JSON.stringify(answer)).toMatchObject({
        ok: true,
        result: { merged: true, commits: 1 },
      })
      expect(subjects(remote('killed')).filter(subject => subject === name)).toHaveLength(1)
      expect(git(repo('killed'), 'rev-parse', 'main')).toBe(git(remote('killed'), 'rev-parse', 'main'))
    }
  })
})
