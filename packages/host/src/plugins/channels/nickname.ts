const literally = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')

/** Whether somebody is called by the nickname, as people do it in rooms: `hatch: …`, or the word anywhere. */
export function callIn(text: string, nickname: string): { isCall: boolean; text: string } {
  const letter = '[\\p{L}\\p{M}\\p{N}_]'
  const word = `(?<!${letter})@?${literally(nickname)}(?!${letter})`
  const isCall = new RegExp(word, 'iu').test(text)
  return { isCall, text: isCall ? text.replace(new RegExp(`^\\s*${word}[:,]\\s*`, 'iu'), '') : text }
}
