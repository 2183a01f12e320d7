import type { Group } from '@hatchway/protocol'
import { countHidden, quoted, quotedStart } from '../../base/visible-text.ts'

/**
 * Letters of other scripts that are drawn like Latin ones, by the Latin letter. What Unicode itself calls compatible
 * (fullwidth, mathematical and similar letters) is found by normalising and need not be here.
 */
const drawnLike: Readonly<Record<string, string>> = {
  a: 'аαɑᴀ',
  b: 'ЬƄ',
  c: 'сϲᴄ',
  d: 'ԁɗ',
  e: 'еҽє',
  f: 'ƒ',
  g: 'ɡց',
  h: 'һհ',
  i: 'іıɩιӏ',
  j: 'јϳյ',
  k: 'кκᴋ',
  l: 'ӏǀ',
  m: 'мᴍ',
  n: 'ոηп',
  o: 'оοօσᴏ',
  p: 'рρ',
  q: 'ԛզ',
  r: 'гᴦ',
  s: 'ѕꜱ',
  t: 'тτᴛ',
  u: 'υսцᴜ',
  v: 'νѵᴠ',
  w: 'ԝωѡᴡ',
  x: 'хχ',
  y: 'уγүʏ',
  z: 'ᴢ',
  A: 'АΑᎪ',
  B: 'ВΒᏴ',
  C: 'СᏟ',
  D: 'Ꭰ',
  E: 'ЕΕᎬ',
  G: 'ԌᏀ',
  H: 'НΗᎻ',
  I: 'ІΙӀ',
  J: 'ЈᎫ',
  K: 'КΚᏦ',
  L: 'Ꮮ',
  M: 'МΜᎷ',
  N: 'Ν',
  O: 'ОΟՕ',
  P: 'РΡᏢ',
  S: 'ЅՏᏚ',
  T: 'ТΤᎢ',
  U: 'Ս',
  V: 'ѴᏙ',
  W: 'ԜᎳ',
  X: 'ХΧ',
  Y: 'УΥҮ',
  Z: 'ΖᏃ',
  '-': '‐‑‒–—−ー',
  '.': '․。',
  ':': '։∶꞉',
  '/': '⁄∕',
}
const latinFor = new Map(
  Object.entries(drawnLike).flatMap(([latin, others]) => [...others].map(other => [other, latin] as const)),
)

const inLatin = (text: string): string =>
  [...text.normalize('NFKC')].map(character => latinFor.get(character) ?? character).join('')

/** What is left of an address when everything is taken away that people do not tell apart at a glance. */
const skeletonOf = (address: string): string =>
  inLatin(address)
    .normalize('NFKD')
    .replace(/[\p{M}\p{C}\p{DI}\s]/gu, '')
    .toLowerCase()
    .replaceAll('0', 'o')
    .replace(/[i1|]/g, 'l')
    .replaceAll('rn', 'm')
    .replaceAll('vv', 'w')

/** The chats that groups have, so that one which only looks like one of them is told apart. */
export interface KnownChats {
  has(jid: string): boolean
  /** another chat's group, whose address could be taken for this one */
  lookalike(jid: string): Pick<Group, 'folder' | 'jid'> | undefined
}

/** The list of groups is the same one until it changes: so is what is made of it, which takes a while for thousands. */
const made = new WeakMap<readonly Group[], KnownChats>()

export function knownChats(groups: readonly Group[]): KnownChats {
  const known = made.get(groups)
  if (known) return known
  let bySkeleton: Map<string, Group[]> | undefined
  const chats: KnownChats = {
    has: jid => groups.some(group => group.jid === jid),
    lookalike(jid) {
      bySkeleton ??= Map.groupBy(groups, group => skeletonOf(group.jid))
      return bySkeleton.get(skeletonOf(jid))?.find(group => group.jid !== jid)
    },
  }
  made.set(groups, chats)
  return chats
}

const scripts = ['Latin', 'Cyrillic', 'Greek', 'Armenian', 'Cherokee', 'Hebrew', 'Arabic'] as const
const inScript = scripts.map(name => ({ name, pattern: new RegExp(`\\p{Script=${name}}`, 'u') }))
const word = /[\p{L}\p{M}\p{N}][\p{L}\p{M}\p{N}.@:_-]*/gu
const rightToLeft = /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u
const nonAscii = /[^\0-\x7f]/
/** So short that a word of another language is likely to be all lookalikes by chance. */
const shortestWord = 3
const shownWord = 40
const longestName = 256
/** Beyond this nobody reads a card, and looking takes its time. */
const longestText = 20_000

/** What a person should know about a text before they trust it. */
export function textNotes(text: string): string[] {
  const count = countHidden(text.slice(0, longestText))
  return [
    ...(count === 0 ? [] : [count === 1 ? 'has 1 invisible character' : `has ${count} invisible characters`]),
    ...letterNotes(text),
  ]
}

/** What they should know about the address of a chat, beside what any text may do. */
export function addressNotes(jid: string, chats: KnownChats): string[] {
  const { jid: other, folder } = chats.lookalike(jid) ?? {}
  return other === undefined ? [] : [`looks like ${quoted(other)} (the group ${folder}), but is another chat`]
}

/** What a reader should know about the letters in it, as far as words can deceive. */
function letterNotes(whole: string): string[] {
  const text = whole.slice(0, longestText)
  if (!nonAscii.test(text)) return []
  const notes: string[] = []
  const show = (found: string) => quotedStart(found, shownWord).text
  const isLatinText = /[A-Za-z]/.test(text)
  // A text in another script has such words by chance, unless it has no others.
  const mayDeceive = (found: string) =>
    isLatinText ? found.length >= shortestWord : !nonAscii.test(inLatin(text.slice(0, longestName)))
  for (const [found] of text.matchAll(word)) {
    if (!nonAscii.test(found)) continue
    const used = inScript.filter(({ pattern }) => pattern.test(found)).map(({ name }) => name)
    const latin = inLatin(found)
    if (used.length > 1) notes.push(`${show(found)} mixes ${used.join(' and ')} letters`)
    else if (found !== latin && !nonAscii.test(latin) && mayDeceive(found)) {
      notes.push(`${show(found)} looks like ${show(latin)} but is written with other characters`)
    }
    if (notes.length >= 3) return notes
  }
  if (isLatinText && rightToLeft.test(text)) notes.push('parts of it read from right to left')
  return notes
}
