import type { Radicale } from '../../src/plugins/calendar/testing/radicale.ts'
import type { Column } from './dialects/types.ts'
import { openGround } from './ground.ts'
import { type Judgement, judge } from './judge.ts'
import { driveColumn } from './lanes.ts'
import { createPerson } from './person.ts'

export interface Tried {
  column: Column
  judgements: Judgement[]
  /** what went wrong on the way */
  troubles: string[]
}

export interface TryOptions {
  docker: NodeJS.ProcessEnv
  radicale: Radicale | undefined
  atEnd(close: () => Promise<void>): void
  tell(line: string): void
}

/** One column from beginning to end, in a house of its own. */
export async function tryColumn(
  column: Column,
  { docker, radicale, atEnd, tell }: TryOptions,
): Promise<Tried> {
  const troubles: string[] = []
  const ground = await openGround({ column, docker, radicale, atEnd })
  const person = createPerson(ground)
  await driveColumn(
    ground,
    {
      add: (about, error) => troubles.push(`${about}: ${error instanceof Error ? error.message : error}`),
    },
    step => tell(`${column.title}: ${step}`),
  )
  await person.leave()
  await ground.stop()
  for (const folder of ['main', 'other'])
    for (const { broken, seen } of ground.evidence(folder))
      if (broken !== undefined) troubles.push(`inside, ${folder}, ${broken}: ${seen}`)
  return { column, judgements: await judge(ground), troubles }
}
