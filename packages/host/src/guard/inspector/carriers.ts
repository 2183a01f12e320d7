/**
 * Ways in which much can be carried out in something that looks like little: a link, a picture that is fetched when
 * the message is shown, a block of letters that means nothing to a person. Honest things look like that, too.
 */
export function carriesData(text: string): string | undefined {
  if (/!\[[^\]]{0,200}\]\(\s{0,5}https?:\/\/[^)\s]{0,2048}[?#]/i.test(text))
    return 'a picture with data in its address'
  for (const [link] of text.matchAll(/\bhttps?:\/\/[^\s"'<>`]{1,4096}/gi)) {
    if (isLoaded(link)) return 'a link with data in it'
  }
  return /[A-Za-z0-9+/_=-]{120}|(?:[0-9a-fA-F]{2}[\s:,]?){65}/.test(text)
    ? 'a long block that no person can read'
    : undefined
}

/** Longer than what tells one page from another. */
const longLabel = 32
const longHost = 100
const longQuery = 200

function isLoaded(link: string): boolean {
  if (!URL.canParse(link)) return true
  const { hostname, pathname, search, hash } = new URL(link)
  if (hostname.length > longHost || hostname.split('.').some(label => label.length >= longLabel)) return true
  if (search.length + hash.length > longQuery) return true
  const parts = [...pathname.split('/'), ...`${search}${hash}`.split(/[?&=#;]/)]
  return parts.some(isBlock)
}

/** Without the hyphens between the words of a title. */
const isBlock = (part: string): boolean =>
  /[A-Za-z0-9+_%]{40}/.test(part) || /(?:%[0-9a-f]{2}){12}/i.test(part)
