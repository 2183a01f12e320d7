import type { ModelChoice } from '../api/host.ts'
import { type ModelSettings, modelSchema } from '../config/model.ts'
import type { Config } from '../config.ts'
import type { Store } from '../store/types.ts'

const metaKey = 'model chosen'

/** The model that an operator has chosen while the host ran. What the configuration names goes before it. */
export function openModelChoice(
  given: Pick<Config, 'model'>,
  store: Pick<Store, 'meta' | 'setMeta'>,
  use: (model: ModelSettings | undefined) => void,
): ModelChoice {
  const { provider, name, url } = given.model
  const isConfigured = provider !== undefined || name !== undefined || url !== undefined
  const stored = store.meta(metaKey) ?? ''
  let chosen = stored === '' ? undefined : modelSchema.parse(JSON.parse(stored))
  const apply = () => use(isConfigured ? undefined : chosen)
  apply()
  return {
    isConfigured,
    chosen: () => chosen,
    choose(model) {
      store.setMeta(metaKey, model === undefined ? '' : JSON.stringify(model))
      chosen = model
      apply()
    },
  }
}
