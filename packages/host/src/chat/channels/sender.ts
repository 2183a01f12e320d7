/** What means something only where a line begins: code, titles, lists, quotes and tables. */
const beginsLine = /^\s*(?:`{3}|~{3}|#{1,6}\s|[-*+]\s|\d+[.)]\s|>|\|)/

/** The name of whoever speaks, before what they say, which is four characters more. */
export const withSender = (name: string, text: string): string =>
  `*${name}*:${beginsLine.test(text) ? '\n' : ' '}${text}`
