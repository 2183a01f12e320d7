import type { GroupDetails } from '@hatchway/host/api-types'
import { useState } from 'react'
import { change } from '../../host/ask.ts'
import { useAction } from '../../live/use-action.ts'
import { useAnswer } from '../../live/use-answer.ts'
import { SearchBox } from '../../parts/filters.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Badge, Confirm, Empty, Facts, PageFrame, Panel, Waiting } from '../../parts/parts.tsx'
import { shortly, visible } from '../../parts/text.ts'
import { Time } from '../../parts/time.tsx'
import { announce } from '../../parts/toast.tsx'
import { useMay } from '../../shell/me.ts'
import { go, hrefOf, replace, useRoute } from '../../shell/route.ts'
import { limitInWords } from './limits.ts'
import { NewGroup } from './new-group.tsx'

/** Who there is, where they work, and what they may. */
export function GroupsPage() {
  const { id, query } = useRoute()
  const { value, error, reload } = useAnswer<GroupDetails[]>('/api/host/groups', ['groups', 'runs'])
  const mayChange = useMay('admin')
  const [isNew, setNew] = useState(query.new === '1')
  const q = query.q?.toLowerCase()
  const shown = (value ?? []).filter(
    ({ folder, name, jid }) => q === undefined || `${folder} ${name} ${jid}`.toLowerCase().includes(q),
  )
  const opened = value?.find(({ folder }) => folder === id)
  const back = hrefOf('groups', undefined, { q: query.q })
  const add = mayChange && (
    <button type="button" className="primary" onClick={() => setNew(true)}>
      <Icon name="plus" size={16} /> Add group
    </button>
  )
  return (
    <div className={`split ${id === undefined ? '' : 'open'}`}>
      <PageFrame title="Groups" hint="Each has a chat, a directory and an agent of its own" actions={add}>
        <Waiting value={value} error={error} />
        {value && value.length > 0 && (
          <div className="filters">
            <SearchBox
              label="Search groups"
              value={query.q}
              change={text => replace(hrefOf('groups', id, { ...query, q: text }))}
            />
          </div>
        )}
        {value?.length === 0 && (
          <Empty icon="groups" title="No group yet">
            <p>{mayChange ? 'Add the first one: its agent answers in the chat.' : 'An admin can add one.'}</p>
            {add}
          </Empty>
        )}
        {value && value.length > 0 && shown.length === 0 && (
          <Empty icon="search" title="No group fits">
            <p>Search for another name, folder or chat.</p>
          </Empty>
        )}
        <ul className="cards">
          {shown.map(group => (
            <GroupCard key={group.folder} group={group} isOpen={group.folder === id} query={query} />
          ))}
        </ul>
      </PageFrame>
      {opened && <GroupPanel key={opened.folder} group={opened} back={back} changed={reload} />}
      {id !== undefined && value && !opened && (
        <Panel title="No such group" back={back}>
          <p>It may have been removed.</p>
        </Panel>
      )}
      {isNew && mayChange && (
        <NewGroup
          hasMain={(value ?? []).some(({ main }) => main)}
          close={() => setNew(false)}
          done={reload}
        />
      )}
    </div>
  )
}

interface GroupCardProps {
  group: GroupDetails
  isOpen: boolean
  query: Readonly<Record<string, string>>
}

const GroupCard = ({ group, isOpen, query }: GroupCardProps) => (
  <li className={`box ${isOpen ? 'open' : ''}`}>
    <h2>
      <a className="row-link" href={hrefOf('groups', group.folder, { q: query.q })}>
        {shortly(group.name, 60)}
      </a>
    </h2>
    <p className="hint">
      <code>{visible(group.folder)}</code> {visible(group.jid)}
    </p>
    <p className="badges">
      {group.main && <Badge tone="mark">main</Badge>}
      <Badge>{group.dialect}</Badge>
      {group.sandbox !== null && <Badge>{visible(group.sandbox)}</Badge>}
      {group.session && <Badge tone="good">{visible(group.session.state)}</Badge>}
      <Taint taint={group.taint} />
    </p>
    <p className="hint">
      {group.last_activity === null ? (
        'Nothing has happened yet'
      ) : (
        <>
          Last active <Time at={group.last_activity} />
        </>
      )}
    </p>
  </li>
)

const Taint = ({ taint }: { taint: GroupDetails['taint'] }) => (
  <>
    {taint.corrupted && <Badge tone="warn">has read strangers’ words</Badge>}
    {taint.secret && <Badge tone="warn">has read secrets</Badge>}
  </>
)

const modes = {
  events: 'by the system’s events',
  polling: 'by looking, as events do not arrive on this mount',
} as const

interface GroupPanelProps {
  group: GroupDetails
  back: string
  changed: () => void
}

function GroupPanel({ group, back, changed }: GroupPanelProps) {
  const { folder, session, mounts, limits, taint } = group
  const path = `/api/host/groups/${encodeURIComponent(folder)}`
  const mayChange = useMay('admin')
  const { attempt, isBusy, error } = useAction()
  const [asked, setAsked] = useState<'remove' | 'reset'>()
  const remove = async () => {
    if (!(await attempt(() => change('DELETE', path)))) return
    announce('The group is removed.')
    changed()
    go(back)
  }
  const reset = async () => {
    if (!(await attempt(() => change('POST', `${path}/reset`)))) return
    announce('The next conversation begins afresh.')
    setAsked(undefined)
    changed()
  }
  return (
    <Panel title={visible(group.name)} back={back}>
      <div className="actions">
        <a className="button" href={hrefOf('chat', group.jid)}>
          <Icon name="chat" size={16} /> Chat
        </a>
        <a className="button" href={hrefOf('traffic', undefined, { group: folder })}>
          <Icon name="traffic" size={16} /> Traffic
        </a>
        <a className="button" href={hrefOf('runs', undefined, { group: folder })}>
          <Icon name="runs" size={16} /> Runs
        </a>
      </div>
      <section>
        <Facts
          facts={[
            ['Folder', <code key="folder">{visible(folder)}</code>],
            ['Chat', visible(group.jid)],
            ['Main', group.main ? 'yes: it may manage the others' : 'no'],
            ['Dialect', group.dialect],
            [
              'Called by',
              group.requires_trigger && !group.main
                ? visible(group.trigger ?? 'the assistant’s name')
                : 'everything said there',
            ],
            ['Channel', visible(group.channel ?? 'by its chat')],
            ['Files noticed', group.mode === undefined ? 'no daemon looks' : modes[group.mode]],
            ['Added', <Time key="added" at={group.added_at} />],
            ['Last active', <Time key="active" at={group.last_activity} />],
          ]}
        />
      </section>
      <section>
        <h3>Agent</h3>
        <Facts
          facts={[
            ['Sandbox', visible(group.sandbox ?? 'none: agents are off')],
            ['Driver', visible(group.driver ?? 'none')],
            [
              'Session',
              session === null ? (
                'none'
              ) : session.run_id === null ? (
                visible(session.state)
              ) : (
                <a key="run" href={hrefOf('runs', session.run_id)}>
                  {visible(session.state)}
                </a>
              ),
            ],
            ['Repository', visible(group.repo ?? 'none')],
          ]}
        />
      </section>
      <section>
        <h3>What its conversation has read</h3>
        <p className="badges">
          <Taint taint={taint} />
          {!taint.corrupted && !taint.secret && 'Neither strangers’ words nor secrets.'}
        </p>
      </section>
      <section>
        <h3>Mounts</h3>
        {mounts.length === 0 && <p className="hint">Only the group’s own directories.</p>}
        <ul className="lines">
          {mounts.map(mount => (
            <li key={mount.to}>
              <span className="grow">
                <code>{visible(mount.from)}</code> at <code>{visible(mount.to)}</code>
              </span>
              <Badge tone={mount.writable ? 'warn' : 'plain'}>
                {mount.writable ? 'writable' : 'read-only'}
              </Badge>
            </li>
          ))}
        </ul>
      </section>
      <section>
        <h3>Quotas</h3>
        <Facts
          facts={Object.entries(limits).map(([name, value]) => {
            const { label, text } = limitInWords(name, value)
            return [label, text] as const
          })}
        />
      </section>
      {mayChange && (
        <section>
          <h3>Change</h3>
          <div className="actions">
            <button type="button" onClick={() => setAsked('reset')}>
              Reset session
            </button>
            <button type="button" className="danger" onClick={() => setAsked('remove')}>
              Remove group
            </button>
          </div>
        </section>
      )}
      {asked === 'remove' && (
        <Confirm
          title={`Remove ${shortly(group.name, 40)}?`}
          action="Remove group"
          isBusy={isBusy}
          error={error}
          confirm={remove}
          close={() => setAsked(undefined)}
        >
          <p>Its agent is stopped and its tasks are cancelled. Its files stay where they are.</p>
        </Confirm>
      )}
      {asked === 'reset' && (
        <Confirm
          title={`Reset the session of ${shortly(group.name, 40)}?`}
          action="Reset session"
          isBusy={isBusy}
          error={error}
          confirm={reset}
          close={() => setAsked(undefined)}
        >
          <p>The conversation that goes on ends, and the agent forgets what was said in it.</p>
        </Confirm>
      )}
    </Panel>
  )
}
