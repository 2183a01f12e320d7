import type { ApprovalRule, ListedApproval, ListedQuestion } from '@hatchway/host/api-types'
import { useState } from 'react'
import { change } from '../../host/ask.ts'
import { useAction } from '../../live/use-action.ts'
import { useAnswer } from '../../live/use-answer.ts'
import { ApprovalCard } from '../../parts/approval-card.tsx'
import { Badge, Columns, Confirm, Empty, PageFrame, type Tone, Waiting } from '../../parts/parts.tsx'
import { QuestionCard } from '../../parts/question-card.tsx'
import { shortly, visible } from '../../parts/text.ts'
import { Time } from '../../parts/time.tsx'
import { announce } from '../../parts/toast.tsx'
import { useMay } from '../../shell/me.ts'
import { hrefOf } from '../../shell/route.ts'
import { answerQuestion } from '../chat/store.ts'

/** What agents are not to do without a person, and what they ask one: what waits comes first. */
const tones: Readonly<Record<ListedApproval['status'], Tone>> = {
  open: 'warn',
  allowed: 'good',
  denied: 'bad',
  expired: 'plain',
  withdrawn: 'plain',
}

export function ApprovalsPage() {
  const { value, error, reload } = useAnswer<ListedApproval[]>('/api/host/approvals?all=1&limit=200', [
    'approvals',
  ])
  const questions = useAnswer<ListedQuestion[]>('/api/questions', ['questions'])
  const mayAnswer = useMay('approver')
  const sorted = (value ?? []).toSorted((a, b) => Date.parse(b.created_at) - Date.parse(a.created_at))
  // What waits longest comes first.
  const open = [
    ...sorted.filter(({ status }) => status === 'open').map(approval => ({ ...about(approval), approval })),
    ...(questions.value ?? []).map(question => ({ ...about(question), question })),
  ].sort((a, b) => Date.parse(a.created_at) - Date.parse(b.created_at))
  const closed = sorted.filter(({ status }) => status !== 'open')
  return (
    <PageFrame title="Approvals" hint="What agents are not to do without a person, and what they ask one">
      <Waiting value={value && questions.value} error={error ?? questions.error} />
      {value && questions.value && open.length === 0 && (
        <Empty icon="approvals" title="Nothing waits for you">
          <p>
            When an agent wants to do something that a person has to allow, or asks something, it stands here
            and in its chat.
          </p>
        </Empty>
      )}
      <ul className="open-approvals">
        {open.map(({ id, group, jid, created_at, ...card }) => (
          <li key={id}>
            <p className="about">
              <span className="who">{visible(group)}</span> <Time at={created_at} />{' '}
              <a href={hrefOf('chat', jid)}>in its chat</a>
            </p>
            {'approval' in card ? (
              <ApprovalCard
                approval={card.approval}
                who={`The agent of ${visible(group)}`}
                path={`/api/host/approvals/${encodeURIComponent(id)}`}
                decided={reload}
              />
            ) : (
              <QuestionCard
                card={card.question}
                canAnswer={card.question.can_answer && mayAnswer}
                choose={async (number, choice) => {
                  await answerQuestion(jid, id, number, choice)
                  questions.reload()
                }}
              />
            )}
          </li>
        ))}
      </ul>
      <Rules />
      <section className="box">
        <h2>Decided</h2>
        {value && closed.length === 0 ? (
          <p className="hint">Nothing has been decided yet.</p>
        ) : (
          <table className="table">
            <Columns names={['Wanted', 'Group', 'Decision', 'When']} />
            <tbody>
              {closed.map(approval => (
                <tr key={approval.id}>
                  <td>
                    {shortly(approval.action.summary, 140)}
                    <p className="hint">{shortly(approval.why, 140)}</p>
                  </td>
                  <td data-name="Group">{visible(approval.group)}</td>
                  <td data-name="Decision">
                    <Badge tone={tones[approval.status]}>{approval.status}</Badge>{' '}
                    {approval.decided_by !== null && (
                      <span className="faint">by {visible(approval.decided_by)}</span>
                    )}
                    {approval.always && <Badge>always</Badge>}
                  </td>
                  <td data-name="When">
                    <Time at={approval.closed_at ?? approval.created_at} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </section>
    </PageFrame>
  )
}

const about = ({ id, group, jid, created_at }: ListedApproval | ListedQuestion) => ({
  id,
  group,
  jid,
  created_at,
})

function Rules() {
  const { value, reload } = useAnswer<ApprovalRule[]>('/api/host/approval-rules', ['approvals'])
  const mayRevoke = useMay('admin')
  const [asked, setAsked] = useState<ApprovalRule>()
  const { attempt, isBusy, error } = useAction()
  const revoke = async () => {
    if (!asked || !(await attempt(() => change('DELETE', `/api/host/approval-rules/${asked.id}`)))) return
    announce('The rule is revoked.')
    setAsked(undefined)
    reload()
  }
  return (
    <section className="box">
      <h2>Allowed always</h2>
      {value?.length === 0 && (
        <p className="hint">
          There are no rules. «Allow always…» on a card allows one exact action, or one tool, until the rule
          is revoked here.
        </p>
      )}
      <ul className="lines">
        {value?.map(rule => (
          <li key={rule.id}>
            <span className="grow">
              {shortly(rule.summary, 140)}{' '}
              <span className="faint">
                {visible(rule.group)}, by {visible(rule.made_by)}
              </span>
            </span>
            <code>{visible(rule.name)}</code>
            <Time at={rule.created_at} />
            {mayRevoke && (
              <button
                type="button"
                className="danger small"
                aria-label={`Revoke: ${shortly(rule.summary, 80)}`}
                onClick={() => setAsked(rule)}
              >
                Revoke
              </button>
            )}
          </li>
        ))}
      </ul>
      {asked && (
        <Confirm
          title="Revoke this rule?"
          action="Revoke"
          isBusy={isBusy}
          error={error}
          confirm={revoke}
          close={() => setAsked(undefined)}
        >
          <p>From then on a person is asked again: {shortly(asked.summary, 200)}</p>
        </Confirm>
      )}
    </section>
  )
}
