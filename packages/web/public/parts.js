/** What the parts of the page are made with: elements that hold text, never markup. */

/** @param {string} tag @param {string} [className] @param {string} [text] */
export function make(tag, className, text) {
  const element = document.createElement(tag)
  if (className) element.className = className
  if (text !== undefined) element.textContent = text
  return element
}

/** Characters that are obeyed and not seen: escapes, and what makes a line read in another direction. */
const obeyed = /(?![\n\t])\p{Cc}|[\u202a-\u202e\u2066-\u2069]/gu

/** @param {string} text */
export const visible = text =>
  text
    .replaceAll('\r\n', '\n')
    .replace(obeyed, character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)

/**
 * Puts these into a list, in this order. What stays is not touched: somebody may be writing in it.
 *
 * @param {Element} list @param {Element[]} items
 */
export function arrange(list, items) {
  const wanted = new Set(items)
  for (const child of [...list.children]) if (!wanted.has(child)) child.remove()
  for (const [i, item] of items.entries()) {
    if (list.children[i] !== item) list.insertBefore(item, list.children[i] ?? null)
  }
}
