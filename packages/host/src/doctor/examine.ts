import { existsSync, lstatSync, readdirSync, readFileSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { bundlePath } from '../agents/launch.ts'
import { chooseSandbox, createSandboxes } from '../agents/sandboxes/choose.ts'
import type { Config } from '../config.ts'
import { containerOwner, layoutOf } from '../layout.ts'

/** One thing the doctor looked at. `bad` keeps something from working; `warning` is worth knowing. */
export interface Finding {
  what: string
  state: 'good' | 'warning' | 'bad'
  says: string
}

const fewWatches = 65_536
const littleSpaceBytes = 1_073_741_824

/** Looks at everything that agents need on this machine. Changes nothing, and needs no daemon. */
export async function examine(config: Config): Promise<Finding[]> {
  return [runtime(), bundle(), ...(await sandboxes(config)), ...directories(config), space(config), watches()]
}

const runtime = (): Finding => ({
  what: 'Node',
  state: Number.parseInt(process.versions.node, 10) >= 24 ? 'good' : 'bad',
  says: `${process.versions.node}; Hatchway needs 24 or newer, which \`npm ci\` brings.`,
})

const bundle = (): Finding =>
  existsSync(bundlePath)
    ? { what: 'agent', state: 'good', says: 'The agent’s side is built.' }
    : { what: 'agent', state: 'bad', says: 'The agent’s side is not built. Run: npm run build' }

async function sandboxes(config: Config): Promise<Finding[]> {
  const choice = await chooseSandbox(config.agents.sandbox, config.agents.driver, createSandboxes(config))
  const considered = choice.considered.map(
    ({ name, available, reason }): Finding => ({
      what: `sandbox ${name}`,
      state: available && name !== 'process' ? 'good' : 'warning',
      says: reason,
    }),
  )
  return [
    ...considered,
    {
      what: 'sandbox in use',
      state: choice.sandbox === undefined ? 'bad' : choice.warning === undefined ? 'good' : 'warning',
      says: choice.warning === undefined ? choice.reason : `${choice.reason} ${choice.warning}`,
    },
  ]
}

/** Wrong owners are the most reported fault of all hatches (lesson 23): the container cannot write, or not remove. */
function directories(config: Config): Finding[] {
  const { ipc, state } = layoutOf(config.data)
  if (!existsSync(ipc)) {
    return [
      { what: 'data', state: 'warning', says: `${config.data} is new: nothing has been started on it.` },
    ]
  }
  const wanted = containerOwner(config)?.uid ?? process.getuid?.() ?? 0
  const strange = readdirSync(ipc, { withFileTypes: true })
    .filter(entry => entry.isDirectory() && entry.name !== 'errors')
    .flatMap(group =>
      readdirSync(join(ipc, group.name), { withFileTypes: true }).map(entry => ({ group, entry })),
    )
    .filter(({ entry }) => entry.isDirectory())
    .map(({ group, entry }) => join(ipc, group.name, entry.name))
    .filter(path => lstatSync(path).uid !== wanted)
  const owners: Finding =
    strange.length === 0
      ? {
          what: 'owners',
          state: 'good',
          says: `Every group’s directories belong to uid ${wanted}, as agents need.`,
        }
      : {
          what: 'owners',
          state: 'bad',
          says: `${strange.length} directories do not belong to uid ${wanted}, ${strange[0]} for one. Run: chown ${wanted} on them.`,
        }
  const open = (lstatSync(state).mode & 0o077) !== 0
  return [
    owners,
    {
      what: 'state',
      state: open ? 'bad' : 'good',
      says: open
        ? `${state} can be entered by others. Run: chmod 700 ${state}`
        : 'Only this user can enter it.',
    },
  ]
}

function space(config: Config): Finding {
  const place = existsSync(config.data) ? config.data : '.'
  const { bavail, bsize } = statfsSync(place)
  const free = bavail * bsize
  const says = `${(free / 1_073_741_824).toFixed(1)} GiB free for the data directory.`
  return { what: 'disk', state: free < littleSpaceBytes ? 'warning' : 'good', says }
}

function watches(): Finding {
  const path = '/proc/sys/fs/inotify/max_user_watches'
  if (!existsSync(path))
    return { what: 'events', state: 'warning', says: 'No inotify here: directories are polled.' }
  const limit = Number(readFileSync(path, 'utf8'))
  return limit >= fewWatches
    ? { what: 'events', state: 'good', says: `${limit} directories may be watched.` }
    : {
        what: 'events',
        state: 'warning',
        says: `Only ${limit} directories may be watched, and a group has three. Raise fs.inotify.max_user_watches.`,
      }
}
