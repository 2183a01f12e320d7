import type { FoundModelsAnswer, ModelsAnswer } from '@hatchway/host/api'
import { call, family, list } from '../command.ts'
import { usageError } from '../failure.ts'
import { required } from '../inputs.ts'
import type { Column } from '../table.ts'
import { visible } from '../text.ts'

const columns: Column<ModelsAnswer[number]>[] = [
  { title: 'GROUP', value: model => model.group ?? '(all)', flexible: true },
  { title: 'PROVIDER', value: model => model.provider ?? '-' },
  { title: 'MODEL', value: model => model.name ?? '(the agent’s own)', flexible: true },
  { title: 'ADDRESS', value: model => model.url, flexible: true },
  { title: 'KEY', value: model => model.key_variable ?? '(none)' },
  { title: 'STATE', value: model => model.problem ?? 'answers', flexible: true },
]

const shown = 3
const foundColumns: Column<FoundModelsAnswer['found'][number]>[] = [
  { title: 'PROVIDER', value: found => found.title },
  { title: 'KEY', value: found => found.key_variable ?? '(none)' },
  {
    title: 'MODELS',
    flexible: true,
    value({ provider, models, problem }) {
      const more = models.length > shown ? `, and ${models.length - shown} more (--json)` : ''
      return (
        problem ??
        models
          .slice(0, shown)
          .map(name => `${provider}/${name}`)
          .join(', ') + more
      )
    },
  },
]

export default family('models', 'list, find and choose the models that agents ask', [
  list('list', 'list the models that agents ask, try each, and say what is wrong', {
    isDefault: true,
    example: '--json',
    rows: (client, api) => client.post('/models/try', {}, api.modelsAnswer),
    columns,
    empty: 'No model is configured.',
  }),
  list('find', 'look for keys in the host’s environment and for model servers on this machine', {
    example: '--json',
    rows: async (client, api) => (await client.post('/models/find', {}, api.foundModelsAnswer)).found,
    columns: foundColumns,
    empty:
      'No model is found. Start Ollama, LM Studio, llama.cpp or vLLM, or set a key such as ANTHROPIC_API_KEY where the host runs.',
  }),
  call('use', 'try a model, and use it from now on, without a restart', {
    example: 'ollama/qwen3',
    input: { model: required('the provider and its name for the model') },
    call(client, api, { model }) {
      const at = model.indexOf('/')
      if (at === -1) throw usageError('Name the provider and the model, such as ollama/qwen3.')
      const body = { provider: model.slice(0, at), name: model.slice(at + 1) }
      return client.post('/models/choose', body, api.chosenModelAnswer)
    },
    print: ({ provider, name, driver }) =>
      `Agents ask ${visible(provider)}/${visible(name)} from now on, by the driver ${driver}.`,
  }),
  call('forget', 'forget the model that was chosen with use, or in the console', {
    example: '',
    call: (client, api) => client.delete('/models/chosen', api.removedAnswer),
    print: ({ removed }) => (removed ? 'No model is chosen any more.' : 'No model was chosen.'),
  }),
])
