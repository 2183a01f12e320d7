/** What becomes of an action: it happens, is looked at first, waits for a person, or does not happen. */
export type Gate = 'allow' | 'inspect' | 'ask' | 'block'

/** What the agent's context has seen since it began. Sticky: what was read cannot be unread. */
export interface Taint {
  /** something strangers may have written */
  corrupted: boolean
  /** something that must not get out */
  secret: boolean
}

/** What an agent wants to happen, as the guard looks at it. */
export interface Action {
  /** the folder of the group whose directory it came from */
  group: string
  /** a command, such as `send_message`, or `shell`, or a service's tool */
  name: string
  /** what a person is told of it, in one line */
  summary: string
  /** what it would do it with; shown to a person and to an inspector, and searched for secrets */
  payload: Readonly<Record<string, unknown>>
  /** of a service's tool: what tells it from another one that takes its name later; shown to nobody */
  origin?: string | undefined
}

/** What an inspector makes of an action. Anything but a clear word is `unsure`. */
export interface Verdict {
  verdict: 'allow' | 'deny' | 'unsure'
  reason: string
  /** who looked: `rules`, or the name of a model */
  by: string
}
