import { join } from 'node:path'
import { createNames, post } from '@hatchway/spool'
import { layoutOf } from '../../../host/src/base/layout.ts'
import type { Random } from '../random.ts'
import { type Op, type Writer, write } from '../writers/writers.ts'
import type { SoakGroup } from './plan.ts'
import { createReceipts, type Receipt, type Receipts } from './receipts.ts'
import { createComplaints, messageText, type Sent } from './traffic.ts'

interface Asking {
  /** what it counts as */
  kind: string
  type: string
  payload: object
  directory?: string
  /** false: people or services take their time, which is not for the figures */
  isTimed?: boolean
  id?: string
}

/** What agents write with: everything that is written with it is counted, and what is answered is looked at. */
export interface Poster {
  data: string
  random: Random
  sent: Sent
  receipts: Receipts
  written(): number
  complain(about: string): void
  inboxOf(group: SoakGroup): string
  nextId(): string
  /** the text of another message that has to be delivered once */
  nextMessage(): string
  count(kind: string): void
  /** one of its files will be refused */
  refusedIn(group: SoakGroup): void
  /** the file as it is */
  drop(group: SoakGroup, directory: string, text: string): void
  /** in version 1, until it is answered */
  ask(group: SoakGroup, asking: Asking): Promise<Receipt>
  /** the same, where there is only one right answer */
  askFor(group: SoakGroup, asking: Asking, isRight?: (receipt: Receipt) => boolean): Promise<Receipt>
  callFor(group: SoakGroup, kind: string, tool: string, input: object): Promise<Receipt>
  /** as a foreign container says it */
  say(group: SoakGroup, writer: Writer, op: Op, kind: string, intent: object): void
}

export function createPoster(options: { process: number; data: string; random: Random }): Poster {
  const { data, random } = options
  const layout = layoutOf(data)
  const complaints = createComplaints()
  const receipts = createReceipts(complaints.add)
  const freshName = createNames()
  const sent: Sent = {
    kind: 'sent',
    process: options.process,
    messages: 0,
    reminders: 0,
    kinds: {},
    asked: 0,
    answered: 0,
    refused: {},
    published: {},
    complaints: complaints.all,
  }
  let written = 0
  let requests = 0

  const inboxOf = ({ folder }: SoakGroup) => join(layout.ipc, folder)
  const nextId = () => `s${options.process}-${requests++}`
  const count = (kind: string) => {
    sent.kinds[kind] = (sent.kinds[kind] ?? 0) + 1
    written++
  }
  const drop: Poster['drop'] = (group, directory, text) =>
    void post(join(inboxOf(group), directory), text, { name: freshName() })
  const ask: Poster['ask'] = (
    group,
    { kind, type, payload, directory = 'tasks', isTimed = true, id = nextId() },
  ) =>
    new Promise(resolve => {
      count(kind)
      sent.asked++
      receipts.expect(join(inboxOf(group), 'responses'), id, isTimed, receipt => {
        sent.answered++
        resolve(receipt)
      })
      drop(
        group,
        directory,
        JSON.stringify({ version: 1, id, type, payload, sent_at: new Date().toISOString() }),
      )
    })
  const askFor: Poster['askFor'] = async (group, asking, isRight = ({ ok }) => ok) => {
    const receipt = await ask(group, asking)
    if (!isRight(receipt)) {
      const answer = receipt.ok ? 'ok' : receipt.code
      complaints.add(`${asking.kind} in ${group.folder} was answered with ${answer}`)
    }
    return receipt
  }

  return {
    data,
    random,
    sent,
    receipts,
    written: () => written,
    complain: complaints.add,
    inboxOf,
    nextId,
    nextMessage: () => messageText(options.process, sent.messages++),
    count,
    refusedIn({ folder }) {
      sent.refused[folder] = (sent.refused[folder] ?? 0) + 1
    },
    drop,
    ask,
    askFor,
    callFor: (group, kind, tool, input) =>
      askFor(group, { kind, type: 'call_service', payload: { tool, arguments: input }, isTimed: false }),
    say(group, writer, op, kind, intent) {
      const whole = { op, mark: '', own: group, ...intent }
      const claims = { folder: group.folder, jid: group.jid, isMain: false, everywhere: false }
      const said = writer.says[op]?.(whole, claims)
      if (!said) throw new Error(`${writer.name} has no word for ${op}`)
      count(kind)
      write(writer, inboxOf(group), said, writer.fileName(whole), whole)
    },
  }
}

/** All of them in turn, so that each has had its first of everything early on. */
export function inTurn<T>(all: readonly T[], work: (one: T) => unknown): () => unknown {
  let next = 0
  return () => {
    const one = all[next++ % all.length]
    return one === undefined ? undefined : work(one)
  }
}

/** One thing that agents do. */
export interface Activity {
  name: string
  /** how often, of ten thousand */
  often: number
  act(): unknown
}
