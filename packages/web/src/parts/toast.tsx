import { useEffect, useState } from 'react'

/** A short word that something was done, for eyes and for screen readers. */
let say = (_text: string): void => {}
export const announce = (text: string): void => say(text)

const shownMs = 4000

export function Toast() {
  const [said, setSaid] = useState({ text: '', turn: 0 })
  useEffect(() => {
    say = text => setSaid(({ turn }) => ({ text, turn: turn + 1 }))
    return () => {
      say = () => {}
    }
  }, [])
  useEffect(() => {
    if (said.text === '') return
    const timer = setTimeout(() => setSaid(({ turn }) => ({ text: '', turn })), shownMs)
    return () => clearTimeout(timer)
  }, [said])
  return (
    <div className="toast" role="status" data-shown={said.text !== ''}>
      {said.text}
    </div>
  )
}
