import type { Me } from '@hatchway/host/api-types'
import { Component, type ReactNode, useCallback, useEffect, useState } from 'react'
import { ask, change, HostError, messageOf, onSignedOut, setCsrf } from '../host/ask.ts'
import { chatEvents, feed } from '../live/streams.ts'
import { startChats, useChats } from '../pages/chat/store.ts'
import { Icon } from '../parts/icon.tsx'
import { Empty } from '../parts/parts.tsx'
import { visible } from '../parts/text.ts'
import { Toast } from '../parts/toast.tsx'
import { MeContext } from './me.ts'
import { Navigation } from './navigation.tsx'
import { pages } from './pages.ts'
import { hrefOf, useRoute } from './route.ts'
import { Shortcuts } from './shortcuts.tsx'
import { SignedOut } from './signed-out.tsx'

type Access =
  | { kind: 'unknown' }
  | { kind: 'stranger' }
  | { kind: 'unreachable'; why: string }
  | { kind: 'known'; me: Me }

const againMs = 3000

/** Who is there decides what is shown: the console, or the way in. */
export function App() {
  const [access, setAccess] = useState<Access>({ kind: 'unknown' })
  const enter = useCallback(async () => {
    try {
      const me = await ask<Me>('/api/me')
      setCsrf(me.csrf)
      setAccess({ kind: 'known', me })
    } catch (error) {
      const isStranger = error instanceof HostError && (error.status === 401 || error.status === 403)
      setAccess(isStranger ? { kind: 'stranger' } : { kind: 'unreachable', why: messageOf(error) })
    }
  }, [])
  useEffect(() => {
    onSignedOut(() => setAccess({ kind: 'stranger' }))
    enter()
  }, [enter])
  useEffect(() => {
    if (access.kind !== 'unreachable') return
    const timer = setTimeout(enter, againMs)
    return () => clearTimeout(timer)
  }, [access, enter])
  const leave = useCallback(async () => {
    await change('POST', '/api/logout')
    setCsrf('')
    setAccess({ kind: 'stranger' })
  }, [])

  switch (access.kind) {
    case 'unknown':
      return null
    case 'unreachable':
      return (
        <main className="alone-page">
          <Empty icon="again" title="The host does not answer">
            <p>{visible(access.why)} This page tries again by itself.</p>
          </Empty>
        </main>
      )
    case 'stranger':
      return <SignedOut />
    case 'known':
      return (
        <MeContext value={access.me}>
          <Console me={access.me} leave={leave} />
        </MeContext>
      )
  }
}

function Console({ me, leave }: { me: Me; leave: () => Promise<void> }) {
  useEffect(() => {
    const stop = startChats()
    feed.open()
    chatEvents.open()
    return () => {
      stop()
      feed.close()
      chatEvents.close()
    }
  }, [])
  const route = useRoute()
  const { status } = useChats()
  const found = pages.find(({ id }) => id === route.page)
  return (
    <>
      <button type="button" className="skip" onClick={toContent}>
        To the content
      </button>
      <p id="warning" className="notice" role="alert" hidden={!status?.warning}>
        {status?.warning}
      </p>
      <div className="frame">
        <Navigation route={route} me={me} leave={leave} />
        <main id="content" tabIndex={-1}>
          <Guarded key={route.page}>{found ? <found.page /> : <NoPage />}</Guarded>
        </main>
      </div>
      <Shortcuts />
      <Toast />
    </>
  )
}

/** No link: what stands behind # is where the page is. */
const toContent = (): void => document.getElementById('content')?.focus()

const NoPage = () => (
  <div className="page">
    <h1>There is no such page</h1>
    <Empty icon="search" title="Nothing is here">
      <p>
        <a href={hrefOf('overview')}>To the overview</a>
      </p>
    </Empty>
  </div>
)

/** A page that fails leaves the others standing. */
class Guarded extends Component<{ children: ReactNode }, { error: Error | undefined }> {
  override state: { error: Error | undefined } = { error: undefined }
  static getDerivedStateFromError(error: Error) {
    return { error }
  }
  override render() {
    if (!this.state.error) return this.props.children
    return (
      <div className="page">
        <h1>This page failed</h1>
        <p className="error">{visible(this.state.error.message)}</p>
        <button type="button" onClick={() => this.setState({ error: undefined })}>
          <Icon name="again" size={16} /> Try again
        </button>
      </div>
    )
  }
}
