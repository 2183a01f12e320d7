import { randomBytes } from 'node:crypto'

/** The groups of every benchmark, as they are registered with Hatchway; the peers use the same names. */
export const folderOf = (group: number) => `g${String(group).padStart(4, '0')}`
export const jidOf = (group: number) => `${folderOf(group)}@bench`

/** Where a person and an agent talk: a chat of the daemon's own. */
export const chatJidOf = (group: number) => `local:${folderOf(group)}`

/** A chat with one person, who has this number. */
export const personOf = (group: number) => 601 + group
export const telegramJidOf = (group: number) => `telegram:${personOf(group)}`

const bytes = 200

/** Exactly 200 bytes: a message as a NanoClaw container writes it. */
export const messageBody = (group: number, now: Date): string => {
  const body = (text: string) =>
    JSON.stringify({
      type: 'message',
      chatJid: jidOf(group),
      text,
      groupFolder: folderOf(group),
      timestamp: now.toISOString(),
    })
  return body('The build is green again. '.repeat(8).slice(0, bytes - body('').length))
}

/** `{ms}-{6 base36}.json`, where the six are a counter, so that no name comes twice and one writer's names sort. */
export const fileNames = (writer: number) => {
  let count = 0
  return (now: Date) =>
    `${now.getTime()}-${writer.toString(36)}${(count++).toString(36).padStart(5, '0')}.json`
}

const uuidv7 = (now: Date): string => {
  const random = randomBytes(10)
  random.writeUInt8((random.readUInt8(0) & 0x0f) | 0x70, 0)
  random.writeUInt8((random.readUInt8(2) & 0x3f) | 0x80, 2)
  const hex = now.getTime().toString(16).padStart(12, '0') + random.toString('hex')
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

/** A request of Hatchway's own version 1, which is answered in `responses/{id}.json`: a message, a service's tool, or a shell command. */
export const request = (now: Date, tool?: string): { id: string; body: string } => {
  const id = uuidv7(now)
  const text = 'The build is green again. Shall I deploy?'
  const asked =
    tool === undefined
      ? { type: 'send_message', payload: { text } }
      : tool.startsWith('shell:')
        ? { type: 'check_shell', payload: { command: tool.slice('shell:'.length) } }
        : { type: 'call_service', payload: { tool, arguments: tool === 'list_todos' ? {} : { text } } }
  return { id, body: JSON.stringify({ version: 1, id, ...asked, sent_at: now.toISOString() }) }
}
