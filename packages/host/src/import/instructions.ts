import { lstatSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Paths of NanoClaw's containers that its instructions speak of and that are not here, and what there is instead. */
const gone: readonly (readonly [path: RegExp, instead: string])[] = [
  [
    /\/workspace\/project\/store(?:\/messages\.db)?/,
    'the host’s database is not mounted: /workspace/ipc/available_groups.json has the groups, /workspace/ipc/current_tasks.json the tasks',
  ],
  [
    /\/workspace\/project\/data\/registered_groups\.json|\bregistered_groups\.json/,
    '/workspace/ipc/available_groups.json lists the groups; register_group adds one, and you remove one with: npx hatchway groups remove',
  ],
  [
    /\/workspace\/project\/groups\b/,
    'only its own folder is mounted, at /workspace/group; for another group it schedules a task there',
  ],
  [
    /\/workspace\/project(?!\/(?:store|data\/registered_groups|groups)\b)\S*/,
    'the project is not mounted; give the group a repository (docs/worktrees.md), or a mount (docs/sandboxes.md)',
  ],
  [/\/workspace\/global\b/, 'it is read-only for every group; you write groups/global on the host'],
  [/\/home\/node\b/, 'its home is /home/agent'],
  [/\/app\/src\b/, 'the runner is the image’s own; build an image to change it'],
  [/sender-allowlist\.json/, 'nobody reads it here'],
]

const instructionBytes = 1_048_576

/** What the instructions in a directory say that is no longer so, by file. */
export function outdatedInstructions(directory: string): readonly { file: string; says: string }[] {
  if (!lstatSync(directory, { throwIfNoEntry: false })?.isDirectory()) return []
  return readdirSync(directory, { withFileTypes: true })
    .filter(entry => entry.isFile() && entry.name.endsWith('.md'))
    .flatMap(({ name }) => {
      const path = join(directory, name)
      if (lstatSync(path).size > instructionBytes) return []
      const lines = readFileSync(path, 'utf8').split('\n')
      const found = gone.flatMap(([pattern, instead]) => {
        const at = lines.findIndex(line => pattern.test(line))
        const what = pattern.exec(lines[at] ?? '')?.[0]
        return what === undefined ? [] : [`${what} (line ${at + 1}): ${instead}`]
      })
      return found.length === 0 ? [] : [{ file: name, says: `It speaks of ${found.join('. ')}.` }]
    })
}
