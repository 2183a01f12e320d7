/** What the processes of the soak tell the command that started them. */
interface Tick {
  kind: 'tick'
  posted: number
  /** from the file to its receipt, in milliseconds */
  latencies: number[]
}

/** Everything is open that is needed to miss nothing. */
interface Ready {
  kind: 'ready'
}

/** What one process of agents has sent, and what must have become of it. */
export interface Sent {
  kind: 'sent'
  /** its number: its messages say `soak {number}.{0 …}` and its reminders `soak {number}!{0 …}` */
  process: number
  /** messages that have to be delivered once each */
  messages: number
  /** reminders that have to come once each */
  reminders: number
  /** how many of each kind of command */
  kinds: Record<string, number>
  asked: number
  answered: number
  /** refused files by group */
  refused: Record<string, number>
  /** requests that somebody had to allow, by what came of them */
  published: Record<string, number>
  complaints: string[]
}

interface ChatTick {
  kind: 'chats'
  /** from the message of a person to the agent's reply, in milliseconds */
  latencies: number[]
  delivered: number
}

/** What people have seen and done. */
export interface Heard {
  kind: 'heard'
  /** how often each message was delivered, by process and number; any other than 1 is here */
  odd: string[]
  delivered: number
  /** reminders that people asked for and those that came */
  reminders: { asked: number; came: number }
  /** messages of people to agents, and replies */
  chats: { asked: number; answered: number }
  approvals: number
  questions: number
  reconnects: number
  /** reconnects after which something was missed */
  missed: number
  complaints: string[]
}

export interface Finish {
  kind: 'finish'
  /** what must have been delivered, by process */
  sent: Pick<Sent, 'process' | 'messages' | 'reminders'>[]
}

export type FromAgents = Ready | Tick | Sent
export type FromPeople = Ready | ChatTick | Heard

export const messageText = (process: number, number: number) => `soak ${process}.${number}`
export const reminderText = (process: number, number: number) => `soak ${process}!${number}`
/** What the concierge makes of it when it is due. */
export const reminderSign = '⏰'

const complaintsKept = 100

export function createComplaints() {
  const all: string[] = []
  return {
    all,
    add: (complaint: string) => {
      if (all.length < complaintsKept) all.push(complaint)
    },
  }
}
