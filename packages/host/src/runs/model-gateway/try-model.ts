import type { ChosenModel } from '../../config/model.ts'
import type { ModelProblem } from './health.ts'
import { listModels } from './list-models.ts'

const mostMs = 8000

/** What keeps a model from being asked, as far as the provider's list of models says. */
export async function tryModel(model: ChosenModel, key: string): Promise<ModelProblem | undefined> {
  const list = await listModels(model, key, mostMs)
  if (list.problem) return list.problem
  const { name } = model
  // One that is not named, and a list that is none, are left to the first request.
  if (name === undefined || !list.models?.length) return undefined
  // Ollama means the newest where no other is said.
  const isListed = list.models.some(listed => listed.name === name || listed.name === `${name}:latest`)
  return isListed ? undefined : { cause: 'model_unknown', model: name }
}
