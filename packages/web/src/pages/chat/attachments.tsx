import type { Attachment } from '@hatchway/host/api-types'
import { sizeOf } from '../../parts/figures.ts'
import { visible } from '../../parts/text.ts'
import { type Chosen, pictures, remove } from './chosen.ts'

/** What came along: a picture is shown, everything else is something to be saved. Names are text, never markup. */
export const Attachments = ({ files, grown }: { files: readonly Attachment[]; grown: () => void }) => (
  <ul className="files">
    {files.map(file => (
      <li key={file.id}>
        <AttachmentView file={file} grown={grown} />
      </li>
    ))}
  </ul>
)

function AttachmentView({ file, grown }: { file: Attachment; grown: () => void }) {
  const name = visible(file.name)
  if (file.gone) return <span className="file gone">{name} (no longer kept)</span>
  const address = `/api/files/${encodeURIComponent(file.id)}`
  if (pictures.has(file.type)) {
    return (
      <a className="picture" href={address} target="_blank" rel="noopener">
        <img src={address} alt={name} title={name} onLoad={grown} />
      </a>
    )
  }
  return (
    <a className="file" href={address} download={file.name}>
      <span className="name">{name}</span> <span className="size">{sizeOf(file.bytes)}</span>
    </a>
  )
}

interface ChosenFilesProps {
  jid: string
  files: readonly Chosen[]
  removed: () => void
}

export function ChosenFiles({ jid, files, removed }: ChosenFilesProps) {
  if (files.length === 0) return null
  return (
    <ul className="chosen-list" aria-label="Files to send">
      {files.map(file => {
        const name = visible(file.name)
        return (
          <li key={file.id} className="chosen">
            {file.preview !== undefined && <img src={file.preview} alt="" />}
            <div className="about">
              <span className="name">{name}</span> <span className="size">{sizeOf(file.bytes)}</span>
              {file.progress !== undefined && (
                <progress max={1} value={file.progress} aria-label={`Uploading ${name}`} />
              )}
              <p className="error" role="alert">
                {file.error === undefined ? '' : visible(file.error)}
              </p>
            </div>
            <button
              type="button"
              className="away"
              aria-label={`Do not send ${name}`}
              onClick={() => {
                remove(jid, file)
                removed()
              }}
            >
              ×
            </button>
          </li>
        )
      })}
    </ul>
  )
}
