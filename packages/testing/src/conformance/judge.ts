import { effects } from './effects.ts'
import { type FeatureId, features, isFeature } from './features.ts'
import type { Testbed } from './testbed.ts'

export interface Judgement {
  feature: FeatureId
  ok: boolean
  seen: string
}

/** What was noted inside and is seen outside, put together: nobody's silence counts as a yes. */
export async function judge(testbed: Testbed): Promise<Judgement[]> {
  const noted = ['main', 'other'].flatMap(folder =>
    testbed
      .evidence(folder)
      .flatMap(({ feature, ok = false, seen = '' }) =>
        feature !== undefined && isFeature(feature) ? [{ feature, ok, seen: `${folder}: ${seen}` }] : [],
      ),
  )
  const outside = async (id: FeatureId): Promise<Judgement> => {
    try {
      const check = effects[id]
      if (!check) return { feature: id, ok: false, seen: 'nothing is known of its effect' }
      await check(testbed)
      return { feature: id, ok: true, seen: '' }
    } catch (error) {
      return { feature: id, ok: false, seen: error instanceof Error ? error.message : String(error) }
    }
  }
  return Promise.all(
    testbed.column.has.map(async id => {
      const { by } = features[id]
      const inside = noted.filter(({ feature }) => feature === id)
      const wrong = inside.find(({ ok }) => !ok)
      if (wrong) return wrong
      if (by !== 'outside' && inside.length === 0)
        return { feature: id, ok: false, seen: 'the container has not come to it' }
      return by === 'inside' ? { feature: id, ok: true, seen: '' } : outside(id)
    }),
  )
}
