import { useSyncExternalStore } from 'react'

/** Where one is: #/traffic/42?group=main */
export interface Route {
  page: string
  /** the one thing of the page that is open */
  id: string | undefined
  query: Readonly<Record<string, string>>
}

export function routeOf(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#?\/?/, '').split('?', 2)
  const [page = '', id] = path.split('/', 2)
  return {
    page: page === '' ? 'overview' : page,
    id: id === undefined || id === '' ? undefined : decoded(id),
    query: Object.fromEntries(new URLSearchParams(query)),
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

export function hrefOf(
  page: string,
  id?: string | number | undefined,
  query: Readonly<Record<string, string | undefined>> = {},
): string {
  const given = Object.entries(query).flatMap(([name, value]) => (value ? [[name, value]] : []))
  const search = given.length === 0 ? '' : `?${new URLSearchParams(given)}`
  return `#/${page}${id === undefined ? '' : `/${encodeURIComponent(id)}`}${search}`
}

const subscribe = (heard: () => void) => {
  addEventListener('hashchange', heard)
  return () => removeEventListener('hashchange', heard)
}
const hash = () => location.hash

export const useRoute = (): Route => routeOf(useSyncExternalStore(subscribe, hash))

export const go = (href: string): void => {
  location.hash = href
}

/** What is typed into a filter is no place to come back to. */
export function replace(href: string): void {
  if (href === location.hash) return
  history.replaceState(null, '', href)
  dispatchEvent(new HashChangeEvent('hashchange'))
}
