import { expect, test } from 'vitest'
import { isSyncStep } from './sync-steps.ts'

test.each([
  'git status',
  'git status --porcelain',
  'git diff',
  'git diff --name-only -- src/a.ts',
  'git add a.txt "with space.txt" \'and this\'',
  'git add -A',
  'git checkout --theirs -- a.txt',
  'git rebase --continue',
  'git rebase --abort',
  'cd /workspace/project && git add . && git rebase --continue',
  'git -C /workspace/project rebase --skip',
  'git add a.txt   &&   git status  ;  git rebase --continue',
  'git commit -am "what it is for"',
  'cd /workspace/project\ngit add a.txt\ngit rebase --continue',
])('a step towards a sync: %s', command => {
  expect(isSyncStep(command)).toBe(true)
})

test.each([
  'git -c core.editor=evil rebase --continue',
  'GIT_EDITOR=evil git rebase --continue',
  'git rebase --exec evil main',
  'git rebase -i main',
  'git --exec-path=. status',
  'git config core.fsmonitor evil',
  'git diff --ext-diff',
  'git diff --output=x',
  'git add $(evil)',
  'git add `evil`',
  'git add "$(evil)"',
  'git add a.txt | evil',
  'git add a.txt & evil',
  'git add a.txt || evil',
  'git add a.txt > x',
  'git add a.txt; evil',
  'git add a.txt && evil',
  'git add a.txt\nevil',
  'git add a.txt\revil',
  'git commit -m x --template=y',
  'git commit -F file',
  'git checkout main',
  'git push',
  'git fetch',
  'git status $x',
  'git add *',
  'evil',
  '',
])('anything else is not: %s', command => {
  expect(isSyncStep(command)).toBe(false)
})
