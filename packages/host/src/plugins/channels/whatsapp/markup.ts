import { type MarkdownStyle, plain } from '../markdown.ts'

/** Three of them end a block; a character without width between them does not show, and keeps them from doing so. */
const unbroken = (text: string) => text.replaceAll('``', '`\u200b`').replaceAll('``', '`\u200b`')

/** To the letter: WhatsApp formats every text, except within a block. */
export const verbatim = (text: string): string => `\`\`\`${unbroken(text)}\`\`\``

/** WhatsApp's own signs. There is no way to escape one; a stray sign is shown, or makes words bold, and no more. */
export const signs: MarkdownStyle = {
  ...plain,
  bold: inner => around('*', inner),
  italic: inner => around('_', inner),
  strike: inner => around('~', inner),
  code: raw => (/[`\n]/.test(raw) ? raw : `\`${raw}\``),
  block: raw => verbatim(raw),
}

/** They work within a line only, and beside a letter. */
const around = (sign: string, inner: string): string =>
  inner
    .split('\n')
    .map(line =>
      line.replace(/^(\s*)(.*?)(\s*)$/, (all, before, words, after) =>
        words === '' ? all : `${before}${sign}${words}${sign}${after}`,
      ),
    )
    .join('\n')
