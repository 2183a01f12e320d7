import type { Connection } from './connection.ts'

/** Single values, by name. */
export interface Meta {
  meta(key: string): string | undefined
  setMeta(key: string, value: string): void
}

export const createMeta = ({ sql }: Connection): Meta => ({
  meta(key) {
    const value = sql('SELECT value FROM meta WHERE key = ?').get(key)?.value
    return typeof value === 'string' ? value : undefined
  },
  setMeta: (key, value) =>
    void sql('INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value').run(
      key,
      value,
    ),
})
