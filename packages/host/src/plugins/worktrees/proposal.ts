import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ServiceRefusal } from '../../services/define.ts'
import { callGit, type GitAnswer, ownEnvironment } from './git.ts'
import { visibleEnd, visibleLine } from './words.ts'

/** Commits that came out of a sandbox, once they are known to be what they should be. */
export interface Proposal {
  revision: string
  base: string
  commits: number
  /** of the newest, for people */
  subjects: readonly string[]
  /** where the objects are */
  objects: string
}

export const largestPack = 268_435_456
const usualLimits = { files: 100_000, bytes: 1_073_741_824 }
const shownSubjects = 10
const workMs = 60_000
/** For what an agent made: a small pack may claim to be anything. */
const memoryKb = 3_145_728
const modest = [
  'core.packedGitLimit=256m',
  'core.packedGitWindowSize=32m',
  'core.bigFileThreshold=64m',
].flatMap(setting => ['-c', setting])
const revisionPattern = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/

type Git = (
  args: readonly string[],
  more?: { input?: string; most?: number; hear?: (part: Buffer) => boolean },
) => Promise<GitAnswer>

export const isRevision = (text: string | undefined): text is string =>
  text !== undefined && revisionPattern.test(text)

/**
 * Takes a pack into a repository of its own beside the mirror, and looks at everything before anybody else sees it:
 * each object is well-formed, nothing is missing, the commits follow from the branch, and what they change is not
 * more than a checkout can bear.
 */
export async function examine(options: {
  directory: string
  mirror: string
  pack: string
  revision: string
  base: string
  signal: AbortSignal
  /** what the commits may change */
  limits?: { files: number; bytes: number }
}): Promise<Proposal> {
  const { mirror, revision, base, signal, limits = usualLimits } = options
  const at = join(options.directory, 'proposal.git')
  await mkdir(at, { recursive: true })
  const git: Git = (args, more = {}) =>
    callGit({
      at,
      args: [...modest, ...args],
      environment: ownEnvironment(),
      timeoutMs: workMs,
      signal,
      memoryKb,
      ...more,
    })
  const must = async (what: string, answering: Promise<GitAnswer>) => {
    const answer = await answering
    if (answer.code === 0) return answer.stdout
    const why = answer.ended ?? answer.stderr.trim()
    throw new ServiceRefusal('service_failed', `${what}: ${visibleEnd(why || 'git does not say why', 1000)}`)
  }
  const broken = 'What came out of the worktree is not a sound piece of history'
  const format = base.length === 64 ? 'sha256' : 'sha1'
  await must(
    'A repository could not be made',
    git(['init', '--quiet', '--bare', '--template=', `--object-format=${format}`, '.']),
  )
  await mkdir(join(at, 'objects', 'info'), { recursive: true })
  await writeFile(join(at, 'objects', 'info', 'alternates'), `${join(mirror, 'objects')}\n`)
  await must(
    broken,
    git(['index-pack', '--stdin', '--fix-thin', '--strict', `--max-input-size=${largestPack}`], {
      input: options.pack,
    }),
  )
  const kind = await must(broken, git(['cat-file', '-t', revision]))
  if (kind.trim() !== 'commit') throw new ServiceRefusal('service_failed', `${broken}: no commit.`)
  await must(broken, git(['rev-list', '--objects', '--quiet', revision, '--not', base]))
  const follows = await git(['merge-base', '--is-ancestor', base, revision])
  if (follows.code !== 0) {
    throw new ServiceRefusal('service_failed', `${broken}: it does not follow from the branch.`)
  }
  await weigh(options.directory, git, base, revision, limits)
  const count = Number(await must(broken, git(['rev-list', '--count', `${base}..${revision}`])))
  if (!(count > 0)) throw new ServiceRefusal('service_failed', `${broken}: there are no commits.`)
  const subjects = await must(
    broken,
    git([
      ...['log', '-z', `--max-count=${shownSubjects}`, '--no-show-signature', '--format=%<(200,trunc)%s'],
      `${base}..${revision}`,
    ]),
  )
  return {
    revision,
    base,
    commits: count,
    subjects: subjects
      .split('\0')
      .filter(subject => subject !== '')
      .map(subject => visibleLine(subject.trim())),
    objects: join(at, 'objects'),
  }
}

/** A few hundred bytes can stand for more files, and larger ones, than any disk has room for. */
async function weigh(
  directory: string,
  git: Git,
  base: string,
  revision: string,
  limits: { files: number; bytes: number },
): Promise<void> {
  const tooMuch = new ServiceRefusal(
    'quota_exceeded',
    `The commits change more than ${limits.files} files, or more than ${Math.round(limits.bytes / 1_048_576)} MiB of them.`,
  )
  // Counted as they are listed, which takes no memory, before anything looks at all of them at once.
  const filesIn = async (tree: string, most: number): Promise<number> => {
    let files = 0
    const listed = await git(['ls-tree', '-r', '-z', '--name-only', tree], {
      hear: part => {
        for (const byte of part) if (byte === 0) files++
        return files <= most
      },
    })
    if (listed.code !== 0) throw tooMuch
    return files
  }
  const before = await filesIn(base, Number.POSITIVE_INFINITY)
  await filesIn(revision, before + limits.files)
  const changed = await git(
    ['diff-tree', '-r', '--no-renames', '--raw', '--no-abbrev', '-z', base, revision],
    { most: 134_217_728 },
  )
  if (changed.code !== 0) throw tooMuch
  const ids = changed.stdout
    .split('\0')
    .filter(field => field.startsWith(':'))
    .map(field => field.split(' '))
    .flatMap(([, mode, , id = '']) => (mode === '000000' || mode === '160000' ? [] : [id]))
  if (ids.length > limits.files) throw tooMuch
  if (ids.length === 0) return
  const list = join(directory, 'changed')
  await writeFile(list, `${ids.join('\n')}\n`)
  const sizes = await git(['cat-file', '--batch-check=%(objectsize)'], { input: list })
  if (sizes.code !== 0) throw tooMuch
  let sum = 0
  for (const size of sizes.stdout.trim().split('\n')) sum += Number(size)
  if (!(sum <= limits.bytes)) throw tooMuch
}
