import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const types: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  ico: 'image/x-icon',
  js: 'text/javascript; charset=utf-8',
  png: 'image/png',
  svg: 'image/svg+xml',
  webmanifest: 'application/manifest+json',
  webp: 'image/webp',
  woff2: 'font/woff2',
}

/** A name that changes with the content: what it stands for never does. */
const hashed = /[-.][A-Za-z0-9_-]{8,}\.[a-z0-9]+$/
const assetShape = /^\/(?:[A-Za-z0-9_-]+\/)*[A-Za-z0-9_-][A-Za-z0-9._-]*\.([a-z0-9]+)$/
/** Each part ends in one way only: a path that fits nearly must not be tried in all the ways it could be cut up. */
const pageShape = /^\/(?:[A-Za-z0-9_%:@+~-]+(?:\/|$))*$/

/** What whoever is not signed in needs, whichever console there is. */
const own = new Map([
  ['/sign-in.css', 'sign-in.css'],
  ['/sign-in.js', 'sign-in.js'],
])
const ownDirectory = join(import.meta.dirname, 'access', 'assets')

/** The console's files, and nothing else of the disk: no path with dots, no link, no type that is not the console's. */
export interface StaticFiles {
  asset(path: string): { content: Buffer<ArrayBuffer>; headers: Record<string, string> } | undefined
  /** whether it is a place in the console, which its one page shows */
  isPage(path: string): boolean
  page(): Buffer<ArrayBuffer> | undefined
}

export function createStaticFiles(directory: string): StaticFiles {
  return {
    asset(path) {
      const type = types[assetShape.exec(path)?.[1] ?? '']
      if (type === undefined) return undefined
      const name = own.get(path)
      const content = name === undefined ? read(join(directory, path)) : read(join(ownDirectory, name))
      if (!content) return undefined
      const isForEver = path.startsWith('/assets/') && hashed.test(path)
      return {
        content,
        headers: {
          'content-type': type,
          ...(isForEver ? { 'cache-control': 'public, max-age=31536000, immutable' } : {}),
        },
      }
    },
    isPage: path => pageShape.test(path) && !path.includes('//'),
    page: () => read(join(directory, 'index.html')),
  }
}

function read(path: string): Buffer<ArrayBuffer> | undefined {
  let fd: number
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (error) {
    if (error instanceof Error && 'code' in error) return undefined
    throw error
  }
  try {
    return fstatSync(fd).isFile() ? readFileSync(fd) : undefined
  } finally {
    closeSync(fd)
  }
}
