/** A folder after a name: what is left of it in small letters, digits and hyphens. */
export const folderFor = (name: string): string =>
  name
    .toLowerCase()
    .normalize('NFKD')
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')
