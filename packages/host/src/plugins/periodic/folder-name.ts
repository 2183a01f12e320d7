import { folderSchema } from '@hatchway/protocol'

/** Accents are dropped, everything else that a folder's name cannot have becomes a dash. */
export function folderOf(name: string): string | undefined {
  const plain = name
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replaceAll('ß', 'ss')
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 48)
    .replace(/-+$/, '')
  // Some names are not for groups: a folder that everybody reads, or the host's own.
  return folderSchema.safeParse(plain).data
}
