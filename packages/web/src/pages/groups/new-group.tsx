import { dialectNames } from '@hatchway/protocol/names'
import { useState } from 'react'
import { change } from '../../host/ask.ts'
import { useAction } from '../../live/use-action.ts'
import { Dialog, Field, TextField } from '../../parts/parts.tsx'
import { announce } from '../../parts/toast.tsx'
import { go, hrefOf } from '../../shell/route.ts'
import { folderFor } from './folder.ts'

interface NewGroupProps {
  hasMain: boolean
  close: () => void
  done: () => void
}

export function NewGroup({ hasMain, close, done }: NewGroupProps) {
  const [name, setName] = useState('')
  const [folder, setFolder] = useState<string>()
  const [jid, setJid] = useState<string>()
  const [dialect, setDialect] = useState('hatchway')
  const [isMain, setMain] = useState(!hasMain)
  const [needsTrigger, setNeedsTrigger] = useState(false)
  const { attempt, isBusy, error } = useAction()
  const itsFolder = folder ?? folderFor(name)
  const itsJid = jid ?? (itsFolder === '' ? '' : `web:${itsFolder}`)

  const save = async () => {
    const body = {
      folder: itsFolder,
      jid: itsJid,
      name,
      main: isMain,
      dialect,
      requires_trigger: needsTrigger,
    }
    if (!(await attempt(() => change('POST', '/api/host/groups', body)))) return
    announce('The group is added.')
    done()
    close()
    go(hrefOf('groups', itsFolder))
  }

  return (
    <Dialog title="Add group" close={close}>
      <form
        onSubmit={event => {
          event.preventDefault()
          save()
        }}
      >
        <div className="dialog-body">
          <TextField label="Name" required most={256} value={name} change={setName} />
          <div className="field-row">
            <TextField
              label="Folder"
              hint="Letters, digits and hyphens."
              required
              most={64}
              value={itsFolder}
              change={setFolder}
            />
            <TextField
              label="Chat"
              hint="web:… is a chat in this console."
              required
              most={256}
              value={itsJid}
              change={setJid}
            />
          </div>
          <Field label="Dialect" hint="What its agent speaks; hatchway unless it comes from another project.">
            {id => (
              <select id={id} value={dialect} onChange={event => setDialect(event.target.value)}>
                {dialectNames.map(each => (
                  <option key={each}>{each}</option>
                ))}
              </select>
            )}
          </Field>
          <label className="check">
            <input
              type="checkbox"
              checked={isMain}
              disabled={hasMain}
              onChange={event => setMain(event.target.checked)}
            />
            The main group, which may manage the others
          </label>
          <label className="check">
            <input
              type="checkbox"
              checked={needsTrigger}
              onChange={event => setNeedsTrigger(event.target.checked)}
            />
            The agent answers only when it is called by name
          </label>
        </div>
        <p className="error" role="alert">
          {error}
        </p>
        <div className="dialog-foot">
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" className="primary" aria-busy={isBusy}>
            Add group
          </button>
        </div>
      </form>
    </Dialog>
  )
}
