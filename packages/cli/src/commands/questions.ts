import type { ListedQuestionAnswer } from '@hatchway/host/api'
import { list } from '../command.ts'
import { timeColumn } from '../format.ts'
import type { Column } from '../table.ts'

const unanswered = ({ questions, answers }: ListedQuestionAnswer): string =>
  questions
    .filter((_, i) => !answers[i])
    .map(({ question }) => question)
    .join(' · ')

const columns: Column<ListedQuestionAnswer>[] = [
  { title: 'GROUP', value: ({ group }) => group, flexible: true },
  { title: 'QUESTION', value: unanswered, flexible: true },
  timeColumn('EXPIRES', ({ expires_at }) => expires_at),
]

export default list('questions', 'list unanswered questions of agents; answer with `chat --group`', {
  rows: (client, api) => client.get('/api/questions', api.questionsAnswer),
  columns,
  empty: 'No open questions.',
})
