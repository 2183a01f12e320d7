const browsers = [
  ['Edg/', 'Edge'],
  ['OPR/', 'Opera'],
  ['Firefox/', 'Firefox'],
  ['Chrome/', 'Chrome'],
  ['Safari/', 'Safari'],
] as const
const systems = [
  ['Android', 'Android'],
  ['iPhone', 'iPhone'],
  ['iPad', 'iPad'],
  ['Windows', 'Windows'],
  ['Mac OS', 'macOS'],
  ['CrOS', 'ChromeOS'],
  ['Linux', 'Linux'],
] as const

/** `Firefox on Linux`: what a browser says of itself is longer than anybody reads. Undefined: it is none we know. */
export function browserInWords(says: string): string | undefined {
  // They name each other: the more particular ones come first.
  const browser = browsers.find(([sign]) => says.includes(sign))?.[1]
  const system = systems.find(([sign]) => says.includes(sign))?.[1]
  return browser && (system ? `${browser} on ${system}` : browser)
}
