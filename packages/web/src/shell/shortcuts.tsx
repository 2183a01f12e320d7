import { useEffect, useState } from 'react'
import { Dialog } from '../parts/parts.tsx'
import { pages } from './pages.ts'
import { go, hrefOf } from './route.ts'

/** The keyboard: `g` and a letter goes somewhere, `/` searches, `?` shows what there is. */
const pairMs = 1500

let open = (): void => {}
export const showShortcuts = (): void => open()

const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement &&
  (target.matches('input, textarea, select, [contenteditable]') || target.closest('dialog') !== null)

export function Shortcuts() {
  const [isShown, setShown] = useState(false)
  useEffect(() => {
    open = () => setShown(true)
    let went = 0
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return
      const isPair = event.timeStamp - went < pairMs
      went = 0
      const page = isPair && pages.find(({ key }) => key === event.key)
      if (page) {
        event.preventDefault()
        go(hrefOf(page.id))
      } else if (event.key === 'g') went = event.timeStamp
      else if (event.key === '?') setShown(true)
      else if (event.key === '/') {
        const search = document.querySelector<HTMLInputElement>('[data-search]')
        if (!search) return
        event.preventDefault()
        search.focus()
        search.select()
      }
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [])
  if (!isShown) return null
  return (
    <Dialog title="Keyboard shortcuts" close={() => setShown(false)}>
      <dl className="shortcuts">
        {pages.map(({ id, title, key }) => (
          <div key={id}>
            <dt>
              <kbd>g</kbd> <kbd>{key}</kbd>
            </dt>
            <dd>{title}</dd>
          </div>
        ))}
        <div>
          <dt>
            <kbd>/</kbd>
          </dt>
          <dd>Search on this page</dd>
        </div>
        <div>
          <dt>
            <kbd>Esc</kbd>
          </dt>
          <dd>Close what is open; leave a field</dd>
        </div>
        <div>
          <dt>
            <kbd>?</kbd>
          </dt>
          <dd>These shortcuts</dd>
        </div>
      </dl>
    </Dialog>
  )
}
