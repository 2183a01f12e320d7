import { statSync } from 'node:fs'
import { homedir } from 'node:os'
import { check, note, saw, TurnEnds } from './evidence.ts'
import { writeFiles } from './files.ts'
import { overseeGroups, registerGroups, tryGroups } from './groups.ts'
import type { Kit } from './kit.ts'
import { sendMessages } from './messages.ts'
import { askHost, askServices, doWork } from './requests.ts'
import { lookAround } from './snapshots.ts'
import { keepTasks, meddle, oversee } from './tasks.ts'

/**
 * What stands in for the model: it does what the prompt tells it to. An order is a word after `do`, with an argument
 * behind `=` if need be.
 */
export const ordersIn = (prompt: string): readonly (readonly [name: string, argument: string])[] =>
  [
    ...prompt
      .replace(/<system_notices>.*?<\/system_notices>|<[^>]*>/gs, '\n')
      .matchAll(/\bdo ((?:[a-z-]+(?:=\S+)? ?)+)/g),
  ]
    .flatMap(([, words = '']) => words.trim().split(' '))
    .map(word => [word.split('=')[0] ?? '', word.split('=')[1] ?? ''] as const)

type Work = (kit: Kit, argument: string) => Promise<void>

const work: Readonly<Record<string, Work>> = {
  files: writeFiles,
  messages: sendMessages,
  tasks: keepTasks,
  look: lookAround,
  groups: registerGroups,
  'try-groups': tryGroups,
  'oversee-groups': overseeGroups,
  oversee,
  meddle,
  services: askServices,
  work: doWork,
  host: askHost,
}

/** what it says when it is done */
export async function perform(kit: Kit, prompt: string): Promise<string> {
  const orders = ordersIn(prompt)
  for (const [name, argument] of orders) {
    note({ begins: name })
    const does =
      kit.own?.[name] ?? (work[name] && ((given: string) => work[name]?.(kit, given) ?? Promise.resolve()))
    try {
      await does?.(argument)
    } catch (error) {
      if (error instanceof TurnEnds) throw error
      note({ broken: name, seen: error instanceof Error ? error.stack : String(error) })
    }
    note({ did: name })
  }
  return `did ${orders.map(([name]) => name).join(' ')}`
}

/** What every container can say about how it was started. */
export async function checkStart(kit: Kit, facts: { document: () => unknown; environment: () => unknown }) {
  await check('uid', () => {
    const uid = process.getuid?.()
    // Its files are its own, and it is neither root nor any user of the machine.
    if (uid === undefined || uid < 1_879_048_192 || statSync(homedir()).uid !== uid)
      throw new Error(`uid ${uid}`)
  })
  await check('document', facts.document)
  await check('environment', facts.environment)
  saw('started', true, kit.who.folder)
}
