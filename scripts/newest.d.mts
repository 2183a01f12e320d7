export function newestIn(paths: readonly string[]): number
