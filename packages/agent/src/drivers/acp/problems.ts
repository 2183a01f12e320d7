/** What can go wrong with an agent that speaks ACP. People see the code after the sentence. */
const codes = {
  acp_not_started: 'Check the program that `command` names, and that it is mounted into the sandbox.',
  acp_not_understood:
    'Check that the program speaks the Agent Client Protocol over its standard input and output.',
  acp_silent:
    'Check that the program speaks the Agent Client Protocol and needs neither a network nor a terminal.',
  acp_login:
    'Give it its key for the model by its own configuration; it cannot log in from inside a sandbox.',
  acp_ended: 'What it was asked is asked again by the next run.',
  acp_flood: 'It was ended.',
  acp_failed: 'Its own log may say more.',
} as const

export class AcpProblem extends Error {
  constructor(code: keyof typeof codes, sentence: string) {
    super(`${sentence} ${codes[code]} (${code})`)
  }
}

const longest = 500

/** What the agent wrote, short enough to be a part of a sentence. */
export function quoted(text: string): string {
  const line = text.replaceAll(/\p{Cc}+/gu, ' ').trim()
  return line.length > longest ? `${line.slice(0, longest).toWellFormed()}…` : line.toWellFormed()
}
