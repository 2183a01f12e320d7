import type { Pairing } from '@hatchway/host/api-types'
import { useState } from 'react'
import { change } from '../../host/ask.ts'
import { useAction } from '../../live/use-action.ts'
import { Dialog, TextField } from '../../parts/parts.tsx'
import { shortly } from '../../parts/text.ts'
import { announce } from '../../parts/toast.tsx'
import { folderFor } from '../groups/folder.ts'

interface LetInProps {
  pairing: Pairing
  close: () => void
  done: () => void
}

/** A chat becomes a group: with a folder of its own, and a word to call its agent by. */
export function LetIn({ pairing: { jid, name, is_group }, close, done }: LetInProps) {
  const [folder, setFolder] = useState(folderFor(name))
  const [trigger, setTrigger] = useState('')
  const { attempt, isBusy, error } = useAction()
  const save = async () => {
    const path = `/api/host/pairings/${encodeURIComponent(jid)}/approve`
    const body = { folder, ...(trigger === '' ? {} : { trigger }) }
    if (!(await attempt(() => change('POST', path, body)))) return
    announce(`${folder} is let in.`)
    done()
    close()
  }
  return (
    <Dialog title={`Let ${shortly(name, 40)} in`} close={close}>
      <form
        onSubmit={event => {
          event.preventDefault()
          save()
        }}
      >
        <div className="dialog-body">
          <TextField
            label="Folder"
            hint="Letters, digits and hyphens. The group’s agent works there."
            required
            most={64}
            value={folder}
            change={setFolder}
          />
          <TextField
            label="Called by"
            hint={
              is_group
                ? 'Left empty, the agent answers when the assistant’s name is said or its account is mentioned.'
                : 'Left empty, everything said there is for the agent.'
            }
            most={128}
            value={trigger}
            change={setTrigger}
          />
        </div>
        <p className="error" role="alert">
          {error}
        </p>
        <div className="dialog-foot">
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" className="primary" aria-busy={isBusy}>
            Let in
          </button>
        </div>
      </form>
    </Dialog>
  )
}
