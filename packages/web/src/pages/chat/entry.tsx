import type { Entry } from '@hatchway/host/api-types'
import { memo } from 'react'
import { ApprovalCard } from '../../parts/approval-card.tsx'
import { absolute, timeOf } from '../../parts/figures.ts'
import { Markdown } from '../../parts/markdown.tsx'
import { QuestionCard } from '../../parts/question-card.tsx'
import { visible } from '../../parts/text.ts'
import { useMay } from '../../shell/me.ts'
import { Attachments } from './attachments.tsx'
import { approvalPath, choose, deliver, type Outgoing, showApproval } from './store.ts'

interface EntryProps {
  entry: Entry
  /** it goes on with what the one before it said */
  isMore: boolean
  assistant: string
  isWritable: boolean
  grown: () => void
  toBox: () => void
}

export const EntryView = memo(function EntryView(props: EntryProps) {
  const { entry, isMore, assistant, isWritable, grown, toBox } = props
  const isOwn = entry.direction === 'in'
  const isFailed = entry.status === 'failed'
  const mayAnswer = useMay('approver')
  const at = Date.parse(entry.at)
  const classes = ['entry', isOwn && 'own', entry.kind, isFailed && 'failed', isMore && 'more']
  const { question } = entry
  const isCard = question !== undefined || entry.approval !== undefined
  return (
    <li className={classes.filter(Boolean).join(' ')} data-key={entry.key}>
      <div className="about">
        <span className="who">
          {isOwn && entry.sender === 'Operator' ? 'You' : visible(entry.sender ?? assistant)}
        </span>
        <time dateTime={entry.at} title={absolute(at)}>
          {timeOf(at)}
        </time>
      </div>
      {question && (
        <QuestionCard
          card={question}
          canAnswer={isWritable && mayAnswer}
          choose={(number, choice) => choose(entry, question.id, number, choice)}
          leave={toBox}
        />
      )}
      {entry.approval && (
        <ApprovalCard
          approval={entry.approval}
          who={assistant}
          path={approvalPath(entry, entry.approval.id)}
          decided={approval => showApproval(entry.key, approval)}
          leave={toBox}
        />
      )}
      {!isCard && (entry.text.trim() !== '' || !entry.attachments) && (
        <div className={`words ${isOwn ? 'as-is' : ''}`}>
          {isOwn ? visible(entry.text) : <Markdown text={entry.text} />}
        </div>
      )}
      {entry.attachments && <Attachments files={entry.attachments} grown={grown} />}
      {isFailed && <div className="fate">not delivered: {visible(entry.error ?? '')}</div>}
      {entry.status === 'pending' && entry.error !== null && (
        <div className="fate">not delivered yet: {visible(entry.error)}</div>
      )}
    </li>
  )
})

/** What an agent is writing; its answer takes the place of it. Nobody has it read out word by word. */
export const LiveTextView = ({ text, assistant }: { text: string; assistant: string }) => (
  <li className="entry live" aria-live="off">
    <div className="about">
      <span className="who">{assistant}</span>
    </div>
    <div className="words">
      <Markdown text={text} />
    </div>
  </li>
)

export function OutgoingView({ message }: { message: Outgoing }) {
  const names = message.files.map(({ name }) => visible(name)).join(', ')
  return (
    <li className={`entry own ${message.failed === undefined ? '' : 'failed'}`}>
      {message.text.trim() !== '' && <div className="words as-is">{visible(message.text)}</div>}
      {names !== '' && <div className="hint">{names}</div>}
      <div className="fate">
        {message.failed === undefined ? 'sending' : visible(message.failed)}
        {message.failed !== undefined && (
          <>
            {' '}
            <button type="button" className="again" onClick={() => deliver(message)}>
              Try again
            </button>
          </>
        )}
      </div>
    </li>
  )
}
