import type { ModelsAnswer } from '@hatchway/host/api'
import { list } from '../command.ts'
import type { Column } from '../table.ts'

const columns: Column<ModelsAnswer[number]>[] = [
  { title: 'GROUP', value: model => model.group ?? '(all)', flexible: true },
  { title: 'PROVIDER', value: model => model.provider ?? '-' },
  { title: 'MODEL', value: model => model.name ?? '(the agent’s own)', flexible: true },
  { title: 'ADDRESS', value: model => model.url, flexible: true },
  { title: 'KEY', value: model => model.key_variable ?? '(none)' },
  { title: 'STATE', value: model => model.problem ?? 'answers', flexible: true },
]

export default list('models', 'list the models that agents ask, try each, and say what is wrong', {
  example: '--json',
  rows: (client, api) => client.post('/models/try', {}, api.modelsAnswer),
  columns,
  empty: 'No model is configured.',
})
