import { flushCompileCache } from 'node:module'

/** Another user, for good. What was compiled is written down first: that user may not write where it is kept. */
export function switchUser(uid: number): void {
  flushCompileCache()
  process.setgroups?.([])
  process.setgid?.(uid)
  process.setuid?.(uid)
  if (process.getuid?.() !== uid) throw new Error(`this process did not become user ${uid}`)
}
