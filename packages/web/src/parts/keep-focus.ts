import { type FocusEvent, useLayoutEffect, useRef } from 'react'

/**
 * Where the keyboard goes on when what it was on is no longer there: to the next thing of the same card that can be
 * answered, or to where the card says.
 */
export function useKeptFocus(state: string, otherwise: () => void) {
  const card = useRef<HTMLDivElement>(null)
  const focused = useRef<Element | undefined>(undefined)
  // biome-ignore lint/correctness/useExhaustiveDependencies: looked at whenever the card has become another
  useLayoutEffect(() => {
    const last = focused.current
    if (last === undefined || (last.isConnected && !last.matches(':disabled') && isShown(last))) return
    focused.current = undefined
    const next = card.current?.querySelector<HTMLElement>('fieldset:enabled button, fieldset:enabled input')
    if (!next || !isShown(next)) return otherwise()
    next.focus({ preventScroll: true })
    if (next instanceof HTMLInputElement) next.setSelectionRange(next.value.length, next.value.length)
  }, [state])
  return {
    ref: card,
    onFocus({ target }: FocusEvent) {
      // Whoever tapped on it has no use for a keyboard that comes up.
      focused.current = target.matches(':focus-visible') ? target : undefined
    },
    onBlur({ target }: FocusEvent) {
      // Not somebody's wish where it went away itself.
      if (target.isConnected && !target.matches(':disabled')) focused.current = undefined
    },
  }
}

const isShown = (element: Element) => element.closest('[hidden]') === null
