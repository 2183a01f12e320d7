/**
 * What an agent wrote, fit to be read by somebody who decides: characters that are obeyed, or hide what is there, are
 * shown as what they are, and all of it stands on one line, so that nothing in it can pass for a line of ours.
 */
const hidden = /[\p{C}\p{Zl}\p{Zp}\u115f\u1160\u3164\uffa0]|\u034f|\u17b4|\u17b5/gu
const shortForms: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

const escaped = (character: string): string => {
  const code = (character.codePointAt(0) ?? 0).toString(16)
  return shortForms[character] ?? (code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, '0')}`)
}

/** What stands between such tags is taken out on the way to people. */
const internalTag = /<(?=\/?internal)/gi

export const visible = (text: string): string => text.replace(hidden, escaped).replace(internalTag, '\\u003c')
