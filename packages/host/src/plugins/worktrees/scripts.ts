/**
 * What is done in a group's worktree, by the shell and the git of a sandbox. The host only reads what they print:
 *
 *   state ready      one word: see `States`
 *   head 3f1c…       further words, a line each
 *   file a.txt
 *                    an empty line, and behind it, for `ready`, a pack of git's
 *
 * Whatever the worktree's own settings make git do happens in there, with the rights the agent has anyway.
 *
 *   WORKTREE MIRROR   where they are    BRANCH    the group's own
 *   UPSTREAM          what it is rebased on
 */
export const states = [
  /** its commits follow */
  'ready',
  /** it has none of its own */
  'nothing',
  'dirty',
  /** a rebase has stopped at a conflict, now or before */
  'conflict',
  /** one is under way, and nothing is in conflict any more */
  'rebasing',
  /** another branch, or none, is checked out */
  'elsewhere',
  'failed',
] as const
export type State = (typeof states)[number]

export const listedFiles = 50

const beginning = `
exec 3>&1 1>&2
say() { printf '%s\\n' "$*" >&3; }
fail() { say "state failed"; say "reason $1"; say ""; exit 0; }
command -v git >/dev/null 2>&1 || fail "there is no git in the sandbox"
cd "$WORKTREE" || fail "the worktree is not there"
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
isRebasing() { [ -d "$(git rev-parse --git-path rebase-merge)" ] || [ -d "$(git rev-parse --git-path rebase-apply)" ]; }
`

/**
 * Where its objects are may have changed with the sandbox; the rest is as it was made unless the agent has changed it. A
 * script that is killed leaves its mark, and the next one removes the locks of its git. `was`: what it was at.
 */
const connect = `
if [ -L .git ] || { [ -e .git ] && [ ! -d .git ]; }; then fail ".git is not a directory"; fi
mark=.git/hatchway-script
was=$(cat "$mark" 2>/dev/null)
if [ -n "$was" ]; then
  rm -f .git/index.lock .git/config.lock .git/HEAD.lock .git/packed-refs.lock
  [ ! -d .git/refs ] || find .git/refs -name '*.lock' -type f -exec rm -f {} +
fi
[ -e .git ] || was=new
mkdir -p .git && echo "\${was:-begun}" > "$mark" || fail "the worktree cannot be written to"
trap 'rm -f "$mark"' EXIT
if [ "$was" = new ]; then
  format=$(git --git-dir="$MIRROR" rev-parse --show-object-format) || fail "the repository cannot be read"
  git init -q --template= --object-format="$format" . || fail "git init failed"
fi
mkdir -p .git/objects/info && printf '%s\\n' "$MIRROR/objects" > .git/objects/info/alternates || fail "the worktree cannot be written to"
git config --replace-all remote.origin.url "$MIRROR" &&
git config --replace-all remote.origin.fetch "+refs/heads/$UPSTREAM:refs/remotes/origin/$UPSTREAM" || fail "the settings in .git cannot be written"
git config --get user.name >/dev/null || git config user.name "$NAME"
git config --get user.email >/dev/null || git config user.email "$NAME@hatchway.invalid"
git fetch -q --no-tags --no-recurse-submodules origin || fail "git fetch failed"
`

export const prepareScript = `${beginning}${connect}
# The agent has not run since: nobody but the script that was killed has begun this.
if [ "$was" = rebase ] && isRebasing; then git rebase --abort || fail "git rebase --abort failed"; fi
if ! git rev-parse -q --verify "refs/heads/$BRANCH" >/dev/null; then
  rm -f .git/index.lock
  force=
  [ "$was" != laying ] || force=-f
  echo laying > "$mark"
  git symbolic-ref HEAD "refs/heads/$BRANCH" &&
  git config "branch.$BRANCH.remote" origin && git config "branch.$BRANCH.merge" "refs/heads/$UPSTREAM" &&
  git read-tree "refs/remotes/origin/$UPSTREAM" && git checkout-index -a -q $force || true
  git update-index -q --refresh || true
  # Last: a branch that is there has its files.
  git update-ref "refs/heads/$BRANCH" "refs/remotes/origin/$UPSTREAM" || true
fi
git rev-parse -q --verify "refs/heads/$BRANCH" >/dev/null || fail "its branch could not be made"
say "state nothing"
say ""
`

export const syncScript = `${beginning}${connect}
list() { git -c core.quotePath=true diff --name-only --diff-filter=U | head -n ${listedFiles} | sed 's/^/file /' >&3; }
stopped() {
  if [ -n "$(git diff --name-only --diff-filter=U)" ]; then say "state conflict"; else say "state rebasing"; fi
  list
  say ""
  exit 0
}
if isRebasing; then stopped; fi
branch=$(git symbolic-ref -q HEAD) || branch="no branch"
if [ "$branch" != "refs/heads/$BRANCH" ]; then
  say "state elsewhere"
  say "branch $branch"
  say ""
  exit 0
fi
changes=$(git -c core.quotePath=true status --porcelain) || fail "git status failed"
if [ -n "$changes" ]; then
  say "state dirty"
  say "count $(printf '%s\\n' "$changes" | wc -l)"
  printf '%s\\n' "$changes" | head -n ${listedFiles} | sed 's/^/file /' >&3
  say ""
  exit 0
fi
echo rebase > "$mark"
git -c core.hooksPath=/dev/null rebase -q "refs/remotes/origin/$UPSTREAM"
code=$?
if isRebasing; then stopped; fi
[ $code = 0 ] || fail "git rebase failed"
base=$(git rev-parse --verify "refs/remotes/origin/$UPSTREAM") && head=$(git rev-parse --verify HEAD) || fail "git rev-parse failed"
if [ "$base" = "$head" ]; then say "state nothing"; else say "state ready"; fi
say "base $base"
say "head $head"
say ""
[ "$base" = "$head" ] || printf '%s\\n' "$head" "^$base" | git pack-objects -q --revs --stdout --thin --delta-base-offset >&3
`

/** So that the agent sees at once what the branch has become. */
export const fetchScript = `${beginning}${connect}
say "state nothing"
say ""
`

/**
 * The operator's check, in a tree of its own with what would become of the branch. Objects are found in MIRROR and
 * PROPOSAL.
 */
export const testScript = `
cd "$WORKTREE" || exit 125
{
  format=$(git --git-dir="$MIRROR" rev-parse --show-object-format) &&
  git init -q --template= --object-format="$format" . &&
  mkdir -p .git/objects/info &&
  printf '%s\\n' "$MIRROR/objects" "$PROPOSAL" > .git/objects/info/alternates &&
  git checkout -q -f --detach "$REVISION"
} || { echo "The files could not be laid out."; exit 125; }
command=$TEST
unset TEST MIRROR PROPOSAL REVISION WORKTREE NAME BRANCH UPSTREAM
exec /bin/sh -c "$command"
`
