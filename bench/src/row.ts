/** What a row of the benchmark is given. */
export interface Setting {
  /** an empty directory of its own, which is removed afterwards */
  directory: string
  quick: boolean
  /** how long a row that watches over time does so; undefined: as long as it finds right */
  minutes: number | undefined
  say(text: string): void
}

/** One line of the table: Hatchway against one limit. */
export interface Line {
  what: string
  hatchway: string
  against: string
  ratio: string
  target: string
  /** undefined: nothing to reach here, or no Hatchway to measure */
  met?: boolean
}

/** A table of its own, for what does not fit Hatchway against one limit. */
export interface Sheet {
  title: string
  heads: readonly string[]
  rows: readonly (readonly string[])[]
  /** what a reader of the figures has to know */
  notes: readonly string[]
}

/** An SVG, to be written as `{name}.svg`. */
export interface Picture {
  name: string
  title: string
  svg: string
  /** what cannot be seen in it */
  notes: readonly string[]
}

export interface RowResult {
  lines: Line[]
  sheets?: Sheet[]
  pictures?: Picture[]
  /** the numbers behind the lines, for the JSON file */
  figures: Record<string, unknown>
  /** what could not be measured, each with the reason */
  missing: string[]
  /** a promise broken, which is no matter of speed */
  broken?: string
}

export interface Row {
  /** as `--only` takes it */
  name: string
  title: string
  run(setting: Setting): Promise<RowResult>
}
