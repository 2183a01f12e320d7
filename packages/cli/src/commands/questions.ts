import type { ListedQuestionAnswer } from '@hatchway/host/api'
import type { Command } from 'commander'
import { briefTime, once, printList, when } from '../list.ts'
import { type CommonOptions, common } from '../options.ts'
import { withClient } from '../session.ts'
import type { Column } from '../table.ts'

const columns: Column<ListedQuestionAnswer>[] = [
  { title: 'GROUP', value: ({ group }) => group, flexible: true },
  {
    title: 'ASKS',
    value: ({ questions, answers }) =>
      questions
        .filter((_, i) => !answers[i])
        .map(({ question }) => question)
        .join(' · '),
    flexible: true,
  },
  { title: 'UNTIL', value: ({ expires_at }) => when(expires_at), brief: briefTime },
]

export function addQuestions(program: Command): void {
  common(
    program
      .command('questions')
      .description('what agents have asked people, and nobody has answered; answer with `chat --group`'),
    'questions',
  ).action((options: CommonOptions) =>
    withClient(options, (client, api) =>
      printList(
        options,
        once(client.get('/api/questions', api.questionsAnswer)),
        columns,
        'Nobody is asked anything.',
      ),
    ),
  )
}
