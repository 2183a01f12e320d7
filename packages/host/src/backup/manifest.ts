import { z } from 'zod'

/** The last member, which makes the archive whole: what is in it, and what made it. */
export const manifestName = 'hatchway-backup.json'
/** of the archive's own form */
export const archiveVersion = 1

const memberSchema = z.object({
  path: z.string(),
  kind: z.enum(['file', 'directory', 'link']),
  size: z.int(),
  sha256: z.string().nullable().describe('null for what has no content'),
  /** it was handled while the backup was made: the database knows it, and it must not be handled again */
  handled: z.boolean().optional(),
})
export type Member = z.infer<typeof memberSchema>

export const manifestSchema = z.object({
  format: z.literal('hatchway-backup'),
  version: z.int(),
  hatchway: z.string(),
  store_version: z.int(),
  made_at: z.iso.datetime(),
  groups: z.boolean().describe('whether the groups’ own files are in it'),
  /** what could not be read, or is neither a file nor a directory nor a link */
  left_out: z.array(z.object({ path: z.string(), why: z.string() })),
  members: z.array(memberSchema),
})
export type Manifest = z.infer<typeof manifestSchema>

const rooms = ['state', 'spool', 'ipc', 'groups', 'files', 'repos', 'worktrees']
/** what agents made, links included */
const agentsRooms = ['groups', 'worktrees', 'repos']
const deepest = 200

/** Whether a path of an archive lies in one of the data directory's rooms, whatever it is made of. */
export function isMemberPath(path: string): boolean {
  const parts = path.split('/')
  return (
    parts.length >= 1 &&
    parts.length <= deepest &&
    rooms.includes(parts[0] ?? '') &&
    !path.includes('\0') &&
    parts.every(part => part !== '' && part !== '.' && part !== '..' && Buffer.byteLength(part) <= 255)
  )
}

export const mayBeLink = (path: string): boolean => {
  const parts = path.split('/')
  return agentsRooms.includes(parts[0] ?? '') && parts.length > 2
}
