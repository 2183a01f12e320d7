import { z } from 'zod'
import type { Lent } from './lending.ts'
import type { LentServer } from './settings.ts'

/**
 * What an added server's data is, from two answers of a person and from what the server says of its tools. A server may
 * make itself out to be more dangerous than the answers say, never less: the only hint in its favour that counts is that
 * a tool changes nothing, and whoever adds the server is shown which of them say so.
 */
export interface Answers {
  /** what goes in can be seen outside, and what comes out may have been written by anybody */
  internet: boolean
  /** what comes out must not get out */
  private: boolean
}

interface Suggestion extends Answers {
  /** what the suggestion is from, if the server is a known one */
  known: string | null
}

const local = { internet: false, private: false }
const localPrivate = { internet: false, private: true }
const online = { internet: true, private: false }
const onlinePrivate = { internet: true, private: true }

/** Packages and addresses that many people use. A suggestion and no more: anybody can call a program anything. */
const knownPrograms: readonly (readonly [RegExp, Answers])[] = [
  [/^(?:@modelcontextprotocol\/|mcp-)server-(?:time|sequential-thinking|everything)$/, local],
  [/^(?:@modelcontextprotocol\/|mcp-)server-(?:filesystem|memory|git|sqlite|postgres|redis)$/, localPrivate],
  [/^(?:@modelcontextprotocol\/|mcp-)server-(?:fetch|puppeteer|brave-search|everart)$/, online],
  [
    /^(?:@modelcontextprotocol\/|mcp-)server-(?:github|gitlab|gdrive|slack|google-maps|sentry)$/,
    onlinePrivate,
  ],
  [/^(?:github-mcp-server|@notionhq\/notion-mcp-server|mcp-remote)$/, onlinePrivate],
  [/^(?:@playwright\/mcp|chrome-devtools-mcp)$/, onlinePrivate],
  [/^@upstash\/context7-mcp$/, online],
]

const programOf = (word: string): string => {
  const last = word.startsWith('@') ? word : (word.split('/').at(-1) ?? word)
  // A version, as in `@playwright/mcp@latest`.
  return last.replace(/(?<=.)@[^@/]*$/, '')
}

const isLoopback = (url: string): boolean =>
  /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(new URL(url).hostname)

const hintsSchema = z.object({
  name: z.string().min(1).max(1024),
  annotations: z
    .object({ openWorldHint: z.boolean().optional().catch(undefined) })
    .optional()
    .catch(undefined),
})

/** What is suggested to whoever adds it; where nothing is known, the worst. */
export function suggestionFor(
  { command = [], args = [], url }: Pick<LentServer, 'command' | 'args' | 'url'>,
  listed: readonly unknown[],
): Suggestion {
  if (url !== undefined) return { ...onlinePrivate, internet: !isLoopback(url), known: null }
  for (const word of [command, args].flat()) {
    const program = programOf(word)
    const answers = knownPrograms.find(([form]) => form.test(program))?.[1]
    if (answers) return { ...answers, known: program }
  }
  const hints = listed.map(tool => hintsSchema.safeParse(tool).data?.annotations)
  const isClosed = hints.length > 0 && hints.every(hint => hint?.openWorldHint === false)
  return { internet: !isClosed, private: true, known: null }
}

interface Labelled {
  labels: NonNullable<LentServer['labels']>
  tools: Record<string, { labels: NonNullable<LentServer['labels']> }>
}

const yesOrNo = (value: boolean): 'yes' | 'no' => (value ? 'yes' : 'no')

/**
 * From the tools as they are shown and lent, not from the list of the server: a tool that is listed twice cannot be shown
 * with the hints of one entry and kept with those of the other. Each is named, so what the server lists later is not lent
 * before somebody has looked at it.
 */
export function labelsFor(
  answers: Answers,
  shown: readonly Pick<Lent, 'remoteName' | 'annotations'>[],
): Labelled {
  const tools = shown.map(({ remoteName, annotations: { readOnlyHint = false, openWorldHint = false } }) => {
    const labels: Labelled['labels'] = { dangerous_writes: yesOrNo(!readOnlyHint) }
    if (openWorldHint && !answers.internet)
      Object.assign(labels, { public_source: 'yes', public_sink: 'yes' })
    return [remoteName, { labels }] as const
  })
  return {
    labels: {
      public_source: yesOrNo(answers.internet),
      public_sink: yesOrNo(answers.internet),
      secret_data: yesOrNo(answers.private),
    },
    tools: Object.fromEntries(tools),
  }
}
