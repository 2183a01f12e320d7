import { useSyncExternalStore } from 'react'

const themes = ['system', 'light', 'dark'] as const
export type Theme = (typeof themes)[number]

const place = 'hatchway-theme'
const watchers = new Set<() => void>()

/** A browser may forbid to keep anything: then it follows the system. */
function kept(): Theme {
  try {
    return themes.find(theme => theme === localStorage.getItem(place)) ?? 'system'
  } catch {
    return 'system'
  }
}

let theme = kept()

export function applyTheme(): void {
  if (theme === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme
}

export function setTheme(next: Theme): void {
  theme = next
  try {
    localStorage.setItem(place, next)
  } catch (error) {
    console.debug('the theme is not kept', error)
  }
  applyTheme()
  for (const heard of watchers) heard()
}

export const useTheme = (): Theme =>
  useSyncExternalStore(
    heard => {
      watchers.add(heard)
      return () => watchers.delete(heard)
    },
    () => theme,
  )
