import type { Radicale } from '../radicale.ts'
import type { Column } from './dialects/types.ts'
import { type Judgement, judge } from './judge.ts'
import { driveColumn } from './lanes.ts'
import { createPerson } from './person.ts'
import { openTestbed } from './testbed.ts'

export interface Tried {
  column: Column
  judgements: Judgement[]
  /** what went wrong on the way */
  problems: string[]
}

export interface TryOptions {
  docker: NodeJS.ProcessEnv
  radicale: Radicale | undefined
  atEnd(close: () => Promise<void>): void
  tell(line: string): void
}

/** One column from beginning to end, in an installation of its own. */
export async function tryColumn(
  column: Column,
  { docker, radicale, atEnd, tell }: TryOptions,
): Promise<Tried> {
  const problems: string[] = []
  const testbed = await openTestbed({ column, docker, radicale, atEnd })
  const person = createPerson(testbed)
  await driveColumn(
    testbed,
    {
      add: (about, error) => problems.push(`${about}: ${error instanceof Error ? error.message : error}`),
    },
    step => tell(`${column.title}: ${step}`),
  )
  await person.leave()
  await testbed.stop()
  for (const folder of ['main', 'other'])
    for (const { broken, seen } of testbed.evidence(folder))
      if (broken !== undefined) problems.push(`inside, ${folder}, ${broken}: ${seen}`)
  return { column, judgements: await judge(testbed), problems }
}
