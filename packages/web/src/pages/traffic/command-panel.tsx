import type { CommandDetails, CommandStep } from '@hatchway/host/api-types'
import { useAnswer } from '../../live/use-answer.ts'
import { clockOf, spanOf } from '../../parts/figures.ts'
import { Badge, Facts, Panel, Source, Waiting } from '../../parts/parts.tsx'
import { indented, visible } from '../../parts/text.ts'
import { Time } from '../../parts/time.tsx'
import { hrefOf } from '../../shell/route.ts'
import { decisionOf } from './list.ts'

/** One command, from the file to the audit entry. */
const words: Readonly<Record<CommandStep['name'], string>> = {
  written: 'The agent wrote the file',
  claimed: 'The host took it',
  decided: 'The host decided',
  answered: 'The answer was placed',
}

export function CommandPanel({ id, back }: { id: string; back: string }) {
  const { value, error } = useAnswer<CommandDetails>(`/api/host/commands/${encodeURIComponent(id)}`)
  return (
    <Panel title={value ? visible(value.type ?? value.file) : `Command ${id}`} back={back}>
      <Waiting value={value} error={error} />
      {value && <Details command={value} />}
    </Panel>
  )
}

function Details({ command }: { command: CommandDetails }) {
  const decision = decisionOf(command)
  const { outcome, sender, steps } = command
  const began = steps[0] && Date.parse(steps[0].at)
  return (
    <>
      <section>
        <h3>Decision</h3>
        <p>
          <Badge tone={decision === 'done' ? 'good' : decision === 'open' ? 'warn' : 'bad'}>{decision}</Badge>{' '}
          {outcome === null && 'It was accepted, and the answer follows.'}
          {outcome?.ok === true && 'It was done.'}
          {outcome?.ok === false && (
            <>
              <code>{outcome.error.code}</code> {visible(outcome.error.message)}
            </>
          )}
        </p>
        {command.error_id !== null && (
          <p>
            <a href={hrefOf('errors', command.error_id)}>The file is kept in errors</a>
          </p>
        )}
      </section>
      <section>
        <h3>Sender</h3>
        <Facts
          facts={[
            [
              'Group',
              <a key="group" href={hrefOf('groups', sender.group)}>
                {visible(sender.group)}
              </a>,
            ],
            ['Main', sender.main ? 'yes' : 'no'],
            ['Dialect', sender.dialect === null ? 'not recognised' : visible(sender.dialect)],
            [
              'File',
              <code key="file">
                {visible(`${command.directory === undefined ? '' : `${command.directory}/`}${command.file}`)}
              </code>,
            ],
            [
              'Request',
              command.request_id === null ? 'none' : <code key="request">{visible(command.request_id)}</code>,
            ],
            ['Number', String(command.seq)],
          ]}
        />
      </section>
      <section>
        <h3>Steps</h3>
        <ol className="steps">
          {steps.map(step => {
            const at = Date.parse(step.at)
            return (
              <li key={step.name}>
                <span className="step-time" title={step.at}>
                  {clockOf(at)}
                </span>
                <span>
                  {words[step.name] ?? step.name}
                  {step.note !== undefined && <span className="faint"> {visible(step.note)}</span>}
                </span>
                <span className="faint">
                  {began === undefined || at === began ? '' : `+${spanOf((at - began) * 1000)}`}
                </span>
              </li>
            )
          })}
        </ol>
        <p className="hint">Deciding took {spanOf(command.took_us)}.</p>
      </section>
      <section>
        <h3>File as received</h3>
        {command.content ? (
          <>
            <Source label="File as received">{visible(command.content.text)}</Source>
            {command.content.truncated && <p className="hint">Only its beginning is shown.</p>}
          </>
        ) : (
          <p className="hint">It is no longer kept: only the latest files and refused ones are.</p>
        )}
      </section>
      <section>
        <h3>Receipt</h3>
        {outcome === null ? (
          <p className="hint">There is none yet.</p>
        ) : (
          <Source label="Receipt">
            {visible(indented(JSON.stringify(outcome.ok ? outcome.result : outcome.error)))}
          </Source>
        )}
      </section>
      <section>
        <h3>Audit</h3>
        {command.audit.length === 0 && <p className="hint">The guard had nothing to decide.</p>}
        <ul className="lines">
          {command.audit.map(entry => (
            <li key={entry.seq}>
              <a href={hrefOf('audit', entry.seq)}>
                <span className="grow">{visible(entry.summary)}</span>
                <Badge>{visible(entry.outcome)}</Badge>
                <Time at={entry.at} />
              </a>
            </li>
          ))}
        </ul>
      </section>
    </>
  )
}
