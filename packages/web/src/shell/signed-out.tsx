import { useEffect } from 'react'
import { Empty } from '../parts/parts.tsx'

/** The host knows the ways in; strangers get nothing of the console. */
export function SignedOut() {
  useEffect(() => {
    document.title = 'Hatchway'
  }, [])
  return (
    <main className="alone-page">
      <Empty icon="leave" title="You are signed out">
        <p>
          <a href="/">Sign in again</a>, or run <code>npx hatchway open</code> on the host: it opens the
          console with its link, and prints it.
        </p>
      </Empty>
    </main>
  )
}
