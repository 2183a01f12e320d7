export interface Size {
  columns: number
  rows: number
}

export interface Page {
  title: string
  lines: readonly string[]
  /** the keys to mention in the last line */
  keys: string
}
