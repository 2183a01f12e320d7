import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findProgram } from '../src/agents/sandboxes/command.ts'
import { startDockerEngine } from '../src/agents/sandboxes/testing/engines.ts'
import { type HouseOptions, openHouse, until } from './house.ts'
import { launch } from './launch.ts'
import { createRandom } from './random.ts'

/**
 * Agents in worktrees of real repositories: real git, a real daemon, real sandboxes. What an agent does in its worktree
 * it does from inside; what the host does is seen in the operator's repository.
 */
const missing = ['bwrap', 'git'].find(program => !findProgram(program))
const isProven = process.env.CI === 'true'
const attempt = missing === undefined || isProven ? test : test.skip
const attemptAsRoot = process.getuid?.() === 0 ? attempt : test.skip

/** It does what is written in its group's folder. */
const agent = 'cat > /tmp/prompt; . ./do.sh'

const environment = {
  PATH: process.env.PATH ?? '/usr/bin:/bin',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_AUTHOR_NAME: 'Olga',
  GIT_AUTHOR_EMAIL: 'olga@example.org',
  GIT_COMMITTER_NAME: 'Olga',
  GIT_COMMITTER_EMAIL: 'olga@example.org',
}
const git = (at: string, ...args: string[]) =>
  execFileSync('git', ['-c', 'safe.directory=*', '-C', at, ...args], {
    env: environment,
    encoding: 'utf8',
  }).trim()

/** The operator's repository with a file of ten lines, and a bare one that is its remote if need be. */
const makeRepository = (path: string, remote?: string) => {
  mkdirSync(path, { recursive: true })
  git(path, 'init', '--quiet', '--initial-branch=main', '.')
  commit(path, 'a.txt', `${lines().join('\n')}\n`, 'the beginning')
  if (remote === undefined) return
  mkdirSync(remote, { recursive: true })
  git(remote, 'init', '--quiet', '--bare', '--initial-branch=main', '.')
  git(path, 'remote', 'add', 'origin', remote)
  git(path, 'push', '--quiet', 'origin', 'main')
}
const lines = () => Array.from({ length: 10 }, (_, index) => `line ${index + 1}`)
const commit = (path: string, file: string, text: string, message: string) => {
  writeFileSync(join(path, file), text)
  git(path, 'add', file)
  git(path, 'commit', '--quiet', '--message', message)
}
const subjects = (path: string, ref = 'main') => git(path, 'log', '--format=%s', ref).split('\n')

/** As an agent's own program would, and leaving nothing that is ours where the agent writes. */
const drop = (directory: string, body: object) => {
  const name = randomUUID()
  writeFileSync(join(directory, `.${name}`), JSON.stringify(body))
  renameSync(join(directory, `.${name}`), join(directory, `${name}.json`))
}

interface Settings extends Pick<HouseOptions, 'atEnd' | 'uid'> {
  repos: (home: string) => Record<string, Record<string, unknown>>
  groups: Record<string, Record<string, unknown>>
  sandbox?: string
  environment?: Record<string, string>
}

const open = async ({ repos, groups, sandbox = 'bubblewrap', environment = {}, ...rest }: Settings) => {
  let place = ''
  const house = await openHouse({
    ...rest,
    sandbox,
    environment: home => {
      place = home
      const file = join(home, 'hatchway.config.mjs')
      const agents = { driver: 'command', command: ['/bin/sh', '-c', agent], idleMs: 100, closeMs: 1000 }
      const config = { agents, repos: repos(home), groups }
      writeFileSync(file, `export default ${JSON.stringify(config)}`)
      return { HATCHWAY_CONFIG: file, ...environment }
    },
  })
  for (const folder of Object.keys(groups)) {
    if (folder !== 'main' && folder !== 'pynchy')
      await house.addGroup({ folder, jid: `local:${folder}`, name: folder })
  }
  const ipc = (folder: string, ...rest: string[]) => join(house.data, 'ipc', folder, ...rest)
  const ask = (folder: string, id: string = randomUUID()) => {
    drop(ipc(folder, 'tasks'), { version: 1, id, type: 'sync_worktree', payload: {} })
    return id
  }
  const answer = async (folder: string, id: string) => {
    const path = ipc(folder, 'responses', `${id}.json`)
    await until(async () => existsSync(path))
    return JSON.parse(readFileSync(path, 'utf8'))
  }
  return {
    ...house,
    home: place,
    /** a daemon that ends itself, as SIGKILL does, at such a step */
    launchFaulty: (fault: string) =>
      launch(house.data, {
        env: {
          ...{ HATCHWAY_AGENTS_ENABLED: 'yes', HATCHWAY_AGENTS_SANDBOX: sandbox, HATCHWAY_TIMEZONE: 'UTC' },
          ...{ HATCHWAY_CONFIG: join(place, 'hatchway.config.mjs'), HATCHWAY_FAULT: fault },
        },
      }),
    /** what the group's agent does in its worktree, and prints */
    async inside(folder: string, script: string) {
      const path = join(house.data, 'groups', folder, 'do.sh')
      writeFileSync(path, `cd "$HATCHWAY_PROJECT_DIR" || exit 1\n${script}\n`)
      const said = await house.hatchway('chat', '--group', folder, '--once', '@Hatch do it', '--wait')
      await until(async () => (await house.runs(folder)).every(({ status }) => status !== 'running'))
      return said
    },
    ask,
    answer,
    sync: (folder: string) => answer(folder, ask(folder)),
    audit: async () => JSON.parse(await house.hatchway('audit', 'list', '--json')),
  }
}
type House = Awaited<ReturnType<typeof open>>

const closing: (() => Promise<void>)[] = []
const atEnd = (close: () => Promise<void>) => void closing.push(close)
const shared = (settings: Settings, keep: (house: House) => void) =>
  beforeAll(async () => {
    if (missing !== undefined && !isProven) return
    keep(await open({ ...settings, atEnd }))
    return async () => {
      for (const close of closing.splice(0)) await close()
    }
  })

/** How an agent asks from inside. */
const askInside = `sync() {
  id=r-$(cat /proc/sys/kernel/random/uuid)
  printf '{"version":1,"id":"%s","type":"sync_worktree","payload":{}}' "$id" > "$HATCHWAY_IPC/tasks/.$id"
  mv "$HATCHWAY_IPC/tasks/.$id" "$HATCHWAY_IPC/tasks/$id.json"
  until [ -e "$HATCHWAY_IPC/responses/$id.json" ]; do sleep 0.05; done
  cat "$HATCHWAY_IPC/responses/$id.json"
}
`

describe('groups with a repository', () => {
  let house: House
  shared(
    {
      repos: home => {
        const at = (name: string) => join(home, 'ops', name)
        for (const name of ['plain', 'conflict', 'review', 'tested', 'olgas']) makeRepository(at(name))
        execFileSync('chown', ['-R', '4711:4711', at('olgas')])
        return {
          plain: { path: at('plain') },
          conflict: { path: at('conflict') },
          review: { path: at('review'), policy: 'branch' },
          tested: {
            path: at('tested'),
            test: 'echo "the check looks"; grep -q good a.txt && test ! -e /workspace/ipc && git log -1 --format=%s',
          },
          olgas: { path: at('olgas') },
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
        pynchy: { repo: 'plain' },
      },
    },
    opened => {
      house = opened
    },
  )
  const repo = (name: string) => join(house.home, 'ops', name)

  attempt('commits become the branch, in the operator’s checkout too, and the others are told', async () => {
    const said = await house.inside(
      'plain',
      'git status | head -1; echo new > new.txt; git add . && git commit -qm "a new $(printf "\\033[31m") file"',
    )
    expect(said).toContain('On branch hatchway/plain')
    const id = house.ask('plain')
    const answer = await house.answer('plain', id)
    expect(answer).toMatchObject({ ok: true, result: { merged: true, commits: 1 } })
    expect(git(repo('plain'), 'log', '--format=%an %ae', '-1')).toBe('plain plain@hatchway.invalid')
    expect(subjects(repo('plain'))).toHaveLength(2)
    expect(readFileSync(join(repo('plain'), 'new.txt'), 'utf8')).toBe('new\n')
    expect(git(repo('plain'), 'status', '--porcelain')).toBe('')
    expect(answer.result.revision).toBe(git(repo('plain'), 'rev-parse', 'main'))

    // The same request again is the same answer, and nothing happens.
    rmSync(join(house.data, 'ipc', 'plain', 'responses', `${id}.json`))
    house.ask('plain', id)
    expect(await house.answer('plain', id)).toEqual(answer)
    expect(await house.sync('plain')).toMatchObject({ ok: true, result: { merged: false, commits: 0 } })
    expect(subjects(repo('plain'))).toHaveLength(2)
    expect(await house.inside('plain', 'git status -sb | head -1; git rev-parse origin/main')).toContain(
      answer.result.revision,
    )

    // The main group works on the same repository: it hears of it, and what it has goes on top.
    const heard = await house.inside(
      'main',
      'cat /tmp/prompt; echo more > more.txt; git add . && git commit -qm "more of it"',
    )
    expect(heard).toContain('plain has merged 1 commit into main of plain')
    expect(heard).toContain('a new \\u{001b}[31m file')
    expect(heard).not.toContain('\u001b[31m file')
    expect(await house.sync('main')).toMatchObject({ ok: true, result: { merged: true, commits: 1 } })
    expect(subjects(repo('plain'))[0]).toBe('more of it')
    expect(readFileSync(join(repo('plain'), 'more.txt'), 'utf8')).toBe('more\n')
    const outcomes = (await house.audit())
      .filter(({ decided_by }: { decided_by: string }) => decided_by === 'host')
      .map(({ group, outcome }: { group: string; outcome: string }) => `${group} ${outcome}`)
    expect(outcomes).toEqual(['main merged', 'plain merged'])
  })

  attempt('a conflict is resolved by the agent, from inside, through shells that ask', async () => {
    const ours = lines()
    ours[4] = 'the operator’s fifth line'
    // The agent has its worktree before the operator goes on.
    await house.inside(
      'conflict',
      'sed -i "s/^line 5$/the fifth line of the agent/" a.txt; git add a.txt; git commit -qm "a better line"; echo x > b.txt; git add b.txt; git commit -qm "and a file"',
    )
    commit(repo('conflict'), 'a.txt', `${ours.join('\n')}\n`, 'the operator’s line')
    const answer = await house.sync('conflict')
    expect(answer).toMatchObject({ ok: false, error: { code: 'merge_conflict' } })
    expect(answer.error.message).toMatch(/git rebase --continue[\s\S]*\na\.txt$/)
    // Asked again in the middle it says the same, and changes nothing.
    expect((await house.sync('conflict')).error).toEqual(answer.error)
    const said = await house.inside(
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
  })

  attempt('a tree that is not clean is refused with what is in it, and so is another branch', async () => {
    await house.inside('review', 'echo changed >> a.txt; touch "new one.txt"')
    const { error } = await house.sync('review')
    expect(error.code).toBe('dirty_tree')
    expect(error.message.split('\n').slice(1)).toEqual([' M a.txt', '?? "new one.txt"'])
    await house.inside('review', 'git checkout -q a.txt; rm "new one.txt"; git checkout -q -b mine')
    expect(await house.sync('review')).toMatchObject({
      error: { code: 'wrong_state', message: expect.stringContaining('refs/heads/mine') },
    })
    await house.inside('review', 'git checkout -q hatchway/review; git branch -D mine')
  })

  attempt('with the policy branch the branch stays, and another is there for review', async () => {
    await house.inside('review', 'echo one > one.txt; git add .; git commit -qm one')
    expect(await house.sync('review')).toMatchObject({
      ok: true,
      result: { merged: false, commits: 1, branch: 'hatchway/review' },
    })
    expect(subjects(repo('review'))).toEqual(['the beginning'])
    expect(subjects(repo('review'), 'hatchway/review')).toEqual(['one', 'the beginning'])
    await house.inside('review', 'git commit -q --amend -m "one, after review"')
    expect(await house.sync('review')).toMatchObject({ ok: true, result: { commits: 1 } })
    expect(subjects(repo('review'), 'hatchway/review')).toEqual(['one, after review', 'the beginning'])
    expect(existsSync(join(repo('review'), 'one.txt'))).toBe(false)
  })

  attempt('a check that fails keeps the commits out, and one that passes lets them in', async () => {
    await house.inside('tested', 'echo bad >> a.txt; git commit -qam "a bad line"')
    const { error } = await house.sync('tested')
    expect(error).toMatchObject({
      code: 'check_failed',
      message: expect.stringMatching(/code 1[\s\S]*the check looks/),
    })
    expect(subjects(repo('tested'))).toEqual(['the beginning'])
    await house.inside('tested', 'echo good >> a.txt; git commit -qam "a good line"')
    expect(await house.sync('tested')).toMatchObject({ ok: true, result: { merged: true, commits: 2 } })
    expect(subjects(repo('tested'))[0]).toBe('a good line')
  })

  attempt('the operator’s unfinished work is not touched', async () => {
    await house.inside('tested', 'echo good >> b.txt; git add .; git commit -qm "another"')
    writeFileSync(join(repo('tested'), 'a.txt'), 'in the middle of something')
    expect(await house.sync('tested')).toMatchObject({ ok: false, error: { code: 'wrong_state' } })
    expect(readFileSync(join(repo('tested'), 'a.txt'), 'utf8')).toBe('in the middle of something')
    git(repo('tested'), 'checkout', 'a.txt')
    // Another branch is checked out: only the branch moves.
    git(repo('tested'), 'checkout', '--quiet', '-b', 'olgas-own')
    expect(await house.hatchway('worktrees', 'sync', 'tested')).toContain('Merged 1 commit')
    expect(subjects(repo('tested'))[0]).toBe('another')
    expect(existsSync(join(repo('tested'), 'b.txt'))).toBe(false)
  })

  attemptAsRoot('what belongs to another user stays theirs', async () => {
    await house.inside('olga', 'echo new > new.txt; git add . && git commit -qm "a new file"')
    expect(await house.sync('olga')).toMatchObject({ ok: true, result: { merged: true } })
    const owners = execFileSync('find', [repo('olgas'), '-not', '-uid', '4711'], { encoding: 'utf8' })
    expect(owners).toBe('')
    expect(lstatSync(join(repo('olgas'), 'new.txt')).uid).toBe(4711)
  })

  attempt('the objects of all are read-only inside, and git says what the host told it', async () => {
    const said = await house.inside(
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
    expect(await house.sync('none')).toMatchObject({
      error: { code: 'unavailable', message: 'No repository is configured for this group.' },
    })
    expect(
      await house.inside('none', 'true; cd /workspace/group; ls -d /workspace/project* 2>&1 | head -1'),
    ).not.toMatch(/^\/workspace\/project$/m)
    const listed = JSON.parse(await house.hatchway('worktrees', 'list', '--json'))
    expect(listed).toContainEqual({
      group: 'review',
      repo: 'review',
      branch: 'main',
      policy: 'branch',
      path: join(house.data, 'worktrees', 'review'),
    })
    await expect(house.hatchway('worktrees', 'sync', 'none')).rejects.toThrow(/No repository is configured/)
  })

  attempt('a group of Pynchy’s has its answer in merge_results', async () => {
    await house.hatchway(
      ...['groups', 'add', '--folder', 'pynchy', '--jid', 'local:pynchy', '--name', 'Pynchy'],
      ...['--dialect', 'pynchy'],
    )
    drop(join(house.data, 'ipc', 'pynchy', 'tasks'), {
      ...{ type: 'sync_worktree_to_main', requestId: 'p-1', groupFolder: 'pynchy' },
    })
    const path = join(house.data, 'ipc', 'pynchy', 'merge_results', 'p-1.json')
    await until(async () => existsSync(path))
    expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({
      success: true,
      message: expect.stringContaining('There is nothing to merge'),
    })
  })
})

describe('a repository with a remote', () => {
  let house: House
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
      house = opened
    },
  )
  const repo = (name: string) => join(house.home, 'ops', name)
  const remote = (name: string) => join(house.home, 'remotes', name)

  attempt('groups that sync at once all end right, and hear of each other', async () => {
    const groups = ['one', 'two', 'three']
    for (const group of groups) {
      await house.inside(group, `echo ${group} > ${group}.txt; git add .; git commit -qm "from ${group}"`)
    }
    const answers = await Promise.all(groups.map(group => house.sync(group)))
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
      const heard = await house.inside(group, 'grep -o "[a-z]* has merged" /tmp/prompt')
      for (const other of groups) expect(heard.includes(`${other} has merged`)).toBe(other !== group)
    }
  })

  attempt(
    'a remote that has moved is gone after, and one that the operator has not kept up with is not harmed',
    async () => {
      await house.inside('moved', 'echo x > x.txt; git add .; git commit -qm "the agent’s"')
      const elsewhere = join(house.home, 'elsewhere')
      git(house.home, 'clone', '--quiet', remote('moved'), elsewhere)
      commit(elsewhere, 'y.txt', 'y\n', 'somebody’s')
      git(elsewhere, 'push', '--quiet', 'origin', 'main')
      expect(await house.sync('moved')).toMatchObject({ ok: true, result: { merged: true, commits: 1 } })
      expect(subjects(remote('moved'))).toEqual(['the agent’s', 'somebody’s', 'the beginning'])
      expect(subjects(repo('moved'))).toEqual(subjects(remote('moved')))

      // What the operator has not pushed is not pushed for him.
      commit(repo('moved'), 'z.txt', 'z\n', 'not to be pushed yet')
      await house.inside('moved', 'echo 2 > x.txt; git commit -qam "the agent’s second"')
      expect(await house.sync('moved')).toMatchObject({
        error: {
          code: 'wrong_state',
          message: expect.stringContaining('has commits that origin does not have'),
        },
      })
      expect(subjects(remote('moved'))).toHaveLength(3)
      git(repo('moved'), 'push', '--quiet', 'origin', 'main')
      expect(await house.sync('moved')).toMatchObject({ ok: true, result: { merged: true } })
      expect(subjects(remote('moved'))[0]).toBe('the agent’s second')
    },
  )

  attempt(
    'a branch for review is pushed, replaced, and not put over what somebody else did to it',
    async () => {
      const branch = 'hatchway/review'
      await house.inside('review', 'echo one > one.txt; git add .; git commit -qm one')
      expect(await house.sync('review')).toMatchObject({ ok: true, result: { merged: false, branch } })
      await house.inside('review', 'git commit -q --amend -m "one, better"')
      expect(await house.sync('review')).toMatchObject({ ok: true })
      expect(subjects(remote('review'), branch)).toEqual(['one, better', 'the beginning'])
      expect(subjects(remote('review'))).toEqual(['the beginning'])

      const elsewhere = join(house.home, 'reviewer')
      git(house.home, 'clone', '--quiet', '--branch', branch, remote('review'), elsewhere)
      commit(elsewhere, 'y.txt', 'y\n', 'a reviewer’s')
      git(elsewhere, 'push', '--quiet', 'origin', branch)
      await house.inside('review', 'git commit -q --amend -m "one, best"')
      expect(await house.sync('review')).toMatchObject({ error: { code: 'wrong_state' } })
      expect(subjects(remote('review'), branch)[0]).toBe('a reviewer’s')
      git(remote('review'), 'branch', '-D', branch)
      expect(await house.sync('review')).toMatchObject({ ok: true })
      expect(subjects(remote('review'), branch)[0]).toBe('one, best')
    },
  )

  attempt.each(['sync_examined', 'sync_recorded', 'sync_pushed', 'sync_delivered', 'sync_told'])(
    'a host that is killed at %s has merged once, and answers, when it is there again',
    async step => {
      await house.inside('killed', `echo ${step} > ${step}.txt; git add .; git commit -qm "${step}"`)
      await house.daemon()?.stop()
      const faulty = house.launchFaulty(step)
      await faulty.ready
      const id = house.ask('killed')
      expect(await faulty.exited).toMatchObject({ signal: 'SIGKILL' })
      await house.up()
      expect(await house.answer('killed', id)).toMatchObject({
        ok: true,
        result: { merged: true, commits: 1, revision: git(remote('killed'), 'rev-parse', 'main') },
      })
      expect(subjects(remote('killed')).filter(subject => subject === step)).toHaveLength(1)
      expect(git(repo('killed'), 'rev-parse', 'main')).toBe(git(remote('killed'), 'rev-parse', 'main'))
      expect(git(repo('killed'), 'status', '--porcelain')).toBe('')
    },
  )

  attempt('and one that is killed at any moment', async () => {
    const seed = Number(process.env.HATCHWAY_SEED ?? Date.now() % 100_000)
    console.log(`seed ${seed}`)
    const random = createRandom(seed)
    for (let round = 0; round < 4; round++) {
      const name = `round ${round}`
      await house.inside('killed', `echo x > "${name}"; git add .; git commit -qm "${name}"`)
      const id = house.ask('killed')
      await new Promise(resolve => setTimeout(resolve, random.below(700)))
      await house.daemon()?.kill()
      await house.up()
      expect(await house.answer('killed', id)).toMatchObject({
        ok: true,
        result: { merged: true, commits: 1 },
      })
      expect(subjects(remote('killed')).filter(subject => subject === name)).toHaveLength(1)
      expect(git(repo('killed'), 'rev-parse', 'main')).toBe(git(remote('killed'), 'rev-parse', 'main'))
    }
  })
})

describe('a hostile worktree', () => {
  let house: House
  shared(
    {
      repos: home => {
        makeRepository(join(home, 'ops', 'hostile'))
        return { hostile: { path: join(home, 'ops', 'hostile'), test: 'true' } }
      },
      groups: { main: {}, hostile: { repo: 'hostile' } },
    },
    opened => {
      house = opened
      mkdirSync(join(house.home, 'canaries'))
      chmodSync(join(house.home, 'canaries'), 0o777)
      writeFileSync(join(house.home, 'canaries', 'secret.txt'), secret)
    },
  )
  const secret = 'nobody may read this'
  const repo = () => join(house.home, 'ops', 'hostile')
  /** what shows that a command has run on the host; inside there is no such directory */
  const touch = (name: string) => `sh -c 'touch ${join(house.home, 'canaries', name)}'`
  const canaries = () =>
    execFileSync('ls', ['-A', join(house.home, 'canaries')], { encoding: 'utf8' })
      .trim()
      .split('\n')
  const isUnharmed = () => {
    expect(canaries()).toEqual(['secret.txt'])
    expect(git(repo(), 'fsck', '--strict')).not.toContain('error')
    expect(git(repo(), 'log', '-p', 'main')).not.toContain(secret)
  }
  const begin = async (script: string) => {
    rmSync(join(house.data, 'worktrees', 'hostile'), { recursive: true, force: true })
    return house.inside('hostile', script)
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
    expect(await house.sync('hostile')).toMatchObject({ ok: true, result: { merged: true } })
    isUnharmed()
    // That the canaries would have shown it: this is what a host would do that runs git there.
    git(join(house.data, 'worktrees', 'hostile'), 'status')
    expect(canaries()).toContain('core.fsmonitor')
    for (const name of canaries()) if (name !== 'secret.txt') rmSync(join(house.home, 'canaries', name))

    for (const setting of [
      `remote.origin.uploadpack "${touch('uploadpack')}"`,
      `url.ext::${touch('url').replaceAll(' ', '% ')}.insteadOf /workspace`,
      `core.worktree ${join(house.home, 'canaries')}`,
      `include.path ${join(house.home, 'canaries', 'secret.txt')}`,
      `extensions.partialClone "ext::${touch('partial').replaceAll(' ', '% ')}"`,
    ]) {
      await begin(
        `echo x >> x.txt; git add .; git commit -qm x; git config protocol.ext.allow always; git config ${setting}; true`,
      )
      await house.sync('hostile')
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
    expect(await house.sync('hostile')).toMatchObject({ ok: false, error: { code: 'service_failed' } })
    isUnharmed()
  })

  attempt('objects that are links to elsewhere bring nothing of the host', async () => {
    const file = join(house.home, 'canaries', 'secret.txt')
    await begin(`
cat /proc/sys/kernel/random/uuid > x.txt; git add .; git commit -qm x
id=$(git rev-parse HEAD:x.txt); object=.git/objects/$(echo $id | cut -c1-2)/$(echo $id | cut -c3-)
rm -f $object; ln -s ${file} $object; true`)
    expect((await house.sync('hostile')).ok).toBe(false)
    await begin(`
cat /proc/sys/kernel/random/uuid > x.txt; git add .; git commit -qm x
rm -rf .git/objects/info; ln -s ${join(house.data, 'state')} .git/objects/info; true`)
    expect((await house.sync('hostile')).ok).toBe(false)
    await begin(`ln -s ${file} link.never; ln -s ${house.home} home.never; git add .; git commit -qm "links"`)
    expect(await house.sync('hostile')).toMatchObject({ ok: true, result: { merged: true } })
    expect(lstatSync(join(repo(), 'link.never')).isSymbolicLink()).toBe(true)
    isUnharmed()
  })

  attempt('a submodule is a line in a file, and nothing is fetched for it', async () => {
    await begin(`
printf '[submodule "a"]\\n\\tpath = a\\n\\turl = ext::${touch('submodule')}\\n' > .gitmodules
git add .gitmodules; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),a; git commit -qm "a submodule"; mkdir -p a; true`)
    await house.sync('hostile')
    isUnharmed()
  })

  attempt('what is said in the name of git is not believed', async () => {
    const base = git(repo(), 'rev-parse', 'main')
    const said = async (report: string, more = '') => {
      await begin(forging(`{ ${report}; ${more || 'true'}; } >&3`))
      return house.sync('hostile')
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
      expect(JSON.stringify(answer)).not.toContain('\\u001b')
      expect(JSON.stringify(answer).length).toBeLessThan(20_000)
    }
    expect(git(repo(), 'rev-parse', 'main')).toBe(base)
    isUnharmed()
    expect(await house.say('are you there?')).not.toBe('')
  })
})

const docker = await startDockerEngine()
afterAll(() => docker?.stop())

describe.each([
  { how: 'without a sandbox', sandbox: 'process' },
  ...(docker
    ? [
        {
          how: 'in Docker',
          sandbox: 'docker',
          environment: { DOCKER_HOST: docker.options.environment?.DOCKER_HOST ?? '' },
        },
      ]
    : []),
  ...(process.getuid?.() === 0
    ? [{ how: 'under a daemon that is not root', sandbox: 'bubblewrap', uid: 4712 }]
    : []),
])('$how', ({ sandbox, uid, environment }) => {
  attempt('commits become the branch, and a check is run', async () => {
    const house = await open({
      sandbox,
      ...(environment ? { environment } : {}),
      ...(uid === undefined ? {} : { uid }),
      repos: home => {
        const path = join(home, 'ops', 'site')
        makeRepository(path)
        if (uid !== undefined) execFileSync('chown', ['-R', `${uid}:${uid}`, path])
        return { site: { path, test: 'test -e new.txt && git log -1 --format=%s' } }
      },
      groups: { main: { repo: 'site' } },
    })
    await house.inside('main', 'echo new > new.txt; git add . && git commit -qm "a new file"')
    expect(await house.sync('main')).toMatchObject({ ok: true, result: { merged: true, commits: 1 } })
    expect(subjects(join(house.home, 'ops', 'site'))).toEqual(['a new file', 'the beginning'])
    expect(
      await house.inside('main', 'git fetch; git status -sb; git log --oneline origin/main | wc -l'),
    ).toContain('2')
  })
})

describe('the end of a scheduled run', () => {
  const finish = (id: string) => [
    `echo '{"version":1,"id":"${id}","type":"finished_work","payload":{}}' > /workspace/ipc/tasks/${id}.json`,
    `while [ ! -e /workspace/ipc/responses/${id}.json ]; do sleep 0.05; done`,
    `cat /workspace/ipc/responses/${id}.json >> /workspace/group/answers`,
  ]
  const task = {
    prompt: 'work',
    schedule_type: 'cron',
    schedule_value: '0 0 1 1 *',
    context_mode: 'isolated',
  }

  attempt('merges its commits, or goes on until they can be', async () => {
    const house = await open({
      repos: home => {
        const path = join(home, 'ops', 'site')
        makeRepository(path)
        return { site: { path, mergeAtEnd: true } }
      },
      groups: { main: { repo: 'site' } },
    })
    const script = [
      'cd "$HATCHWAY_PROJECT_DIR" || exit 1',
      'echo new > new.txt',
      ...finish('too-early'),
      'git add . && git commit -qm "a new file"',
      ...finish('in-time'),
      'sleep 1000',
    ]
    writeFileSync(join(house.data, 'groups', 'main', 'do.sh'), `${script.join('\n')}\n`)
    const posted = await house.hatchway(
      ...['post', '--group', 'main', '--type', 'schedule_task', '--payload', JSON.stringify(task)],
      ...['--wait', '--json'],
    )
    await house.runTask(JSON.parse(posted).result.task_id)
    await until(async () => (await house.runs()).some(({ status }) => status !== 'running'))
    expect(await house.runs()).toMatchObject([{ kind: 'task', status: 'done' }])
    const answers = readFileSync(join(house.data, 'groups', 'main', 'answers'), 'utf8')
    expect(answers).toContain('"code":"dirty_tree"')
    expect(answers).toContain('"status":"finished"')
    expect(subjects(join(house.home, 'ops', 'site'))).toEqual(['a new file', 'the beginning'])
  })
})
