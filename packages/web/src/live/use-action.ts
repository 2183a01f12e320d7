import { useCallback, useRef, useState } from 'react'
import { messageOf } from '../host/ask.ts'
import { visible } from '../parts/text.ts'

/** Something a person asked for: done once at a time, and what went wrong is said beside it. */
export function useAction() {
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState('')
  const busy = useRef(false)
  const attempt = useCallback(async (work: () => Promise<unknown>): Promise<boolean> => {
    if (busy.current) return false
    busy.current = true
    setBusy(true)
    setError('')
    try {
      await work()
      return true
    } catch (error) {
      setError(visible(messageOf(error)))
      return false
    } finally {
      busy.current = false
      setBusy(false)
    }
  }, [])
  return { attempt, isBusy, error }
}
