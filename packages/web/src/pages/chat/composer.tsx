import type { Room } from '@hatchway/host/api-types'
import { type ClipboardEvent, type Ref, useEffect, useRef, useState } from 'react'
import { Icon } from '../../parts/icon.tsx'
import { ChosenFiles } from './attachments.tsx'
import { chooseFiles, takeChosen, useChosen } from './chosen.ts'
import { deliver } from './store.ts'

/** what is being written in each chat */
const drafts = new Map<string, string>()

interface ComposerProps {
  room: Room
  canWrite: boolean
  /** the largest file that can be sent; 0: none can */
  largest: number
  box: Ref<HTMLTextAreaElement>
  /** something to begin with */
  idea: { text: string; turn: number }
  /** files that were dropped on the chat */
  dropped: { files: readonly File[]; turn: number }
  toBox: () => void
  sent: () => void
}

export function Composer({ room, canWrite, largest, box, idea, dropped, toBox, sent }: ComposerProps) {
  const { jid } = room
  const [text, setText] = useState(drafts.get(jid) ?? '')
  const [error, setError] = useState('')
  // Whoever has said to send waits for files that are on their way.
  const [isWaiting, setWaiting] = useState(false)
  const file = useRef<HTMLInputElement>(null)
  const chosen = useChosen(jid)
  const isUploading = chosen.some(({ progress }) => progress !== undefined)
  const isReady = chosen.every(each => each.sent !== undefined)

  const write = (words: string) => {
    drafts.set(jid, words)
    setText(words)
  }
  const choose = (files: Iterable<File>) => setError(chooseFiles(jid, files, largest))

  const submit = () => {
    if ((text.trim() === '' && chosen.length === 0) || !canWrite) return
    setWaiting(isUploading)
    if (isUploading || !isReady) return
    deliver({ id: crypto.randomUUID(), jid, text, files: takeChosen(jid), failed: undefined })
    write('')
    setError('')
    sent()
  }

  // biome-ignore lint/correctness/useExhaustiveDependencies: said once, when the last file is there
  useEffect(() => {
    if (!isWaiting || isUploading) return
    setWaiting(false)
    if (isReady) submit()
  }, [isWaiting, isUploading])

  // biome-ignore lint/correctness/useExhaustiveDependencies: each of them counts once
  useEffect(() => {
    if (idea.turn === 0) return
    write(idea.text)
    toBox()
  }, [idea])
  // biome-ignore lint/correctness/useExhaustiveDependencies: each of them counts once
  useEffect(() => {
    if (dropped.turn > 0) choose(dropped.files)
  }, [dropped])

  const onPaste = (event: ClipboardEvent) => {
    if (event.clipboardData.files.length === 0 || !canWrite || largest === 0) return
    event.preventDefault()
    choose(event.clipboardData.files)
  }

  return (
    <form
      className="compose"
      onSubmit={event => {
        event.preventDefault()
        submit()
      }}
    >
      <ChosenFiles jid={jid} files={chosen} removed={toBox} />
      <p className="error" role="alert">
        {error}
      </p>
      <div className="row">
        {largest > 0 && (
          <>
            <button type="button" className="clip" disabled={!canWrite} onClick={() => file.current?.click()}>
              <Icon name="clip" />
              <span className="unseen">Attach files</span>
            </button>
            <input
              id="file"
              ref={file}
              type="file"
              multiple
              hidden
              onChange={event => {
                choose(event.target.files ?? [])
                // So that the same file can be chosen again.
                event.target.value = ''
              }}
            />
          </>
        )}
        <label className="unseen" htmlFor="text">
          Message
        </label>
        <textarea
          id="text"
          ref={box}
          rows={1}
          maxLength={20_000}
          placeholder="Write a message"
          enterKeyHint="send"
          autoComplete="off"
          disabled={!canWrite}
          value={text}
          onChange={event => write(event.target.value)}
          onPaste={onPaste}
          onKeyDown={event => {
            if (event.key === 'Escape') event.currentTarget.blur()
            // While a letter is being composed, Enter belongs to the input method.
            if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
            event.preventDefault()
            submit()
          }}
        />
        <button id="send" type="submit" className="primary" disabled={!canWrite}>
          Send
        </button>
      </div>
    </form>
  )
}
