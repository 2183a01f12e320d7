/** Commands that are not harmless, by what is wrong with them. */
export type NotHarmless = Readonly<Record<string, readonly string[]>>
