import type { Limits, Usage } from '@hatchway/host/api-types'
import { useMemo } from 'react'
import { useAnswer } from '../../live/use-answer.ts'
import { count } from '../../parts/figures.ts'
import { Select } from '../../parts/filters.tsx'
import { Columns, Empty, PageFrame, Waiting } from '../../parts/parts.tsx'
import { shortly, visible } from '../../parts/text.ts'
import { useMay } from '../../shell/me.ts'
import { hrefOf, replace, useRoute } from '../../shell/route.ts'
import { ConnectModel } from './connect-model.tsx'
import { type Amounts, type By, chartOf, daysUntil, type Measure, seriesOf, sumOf } from './usage.ts'
import { dayOf, UsageChart } from './usage-chart.tsx'

/** Which models agents ask, how much of them they use, and what may be used. */
export function ModelsPage() {
  const mayChange = useMay('admin')
  return (
    <PageFrame title="Models" hint="The models that agents ask, and how much they use of them">
      {mayChange && (
        <section className="box">
          <h2>Found on this host</h2>
          <ConnectModel done={() => {}} />
        </section>
      )}
      <UsageSection />
      <LimitsSection />
    </PageFrame>
  )
}

const periods = [7, 30, 90] as const

function UsageSection() {
  const { query } = useRoute()
  const period = periods.find(each => String(each) === query.days) ?? 30
  const by: By = query.by === 'group' ? 'group' : 'model'
  const measure: Measure = query.measure === 'cost' ? 'cost' : 'tokens'
  const days = useMemo(() => daysUntil(new Date().toISOString().slice(0, 10), period), [period])
  const { value, error } = useAnswer<Usage[]>(`/api/host/usage?since=${days[0]}`, ['runs'])
  const filter = (changes: Record<string, string | undefined>) =>
    replace(hrefOf('models', undefined, { ...query, ...changes }))
  const currency = value?.[0]?.currency ?? ''
  const series = seriesOf(value ?? [], days, by)
  const charted = chartOf(series, days, measure)
  const money = (amount: number) => `${visible(currency)}${amount.toFixed(amount < 1 ? 4 : 2)}`
  const written = (amount: number) => (measure === 'cost' ? money(amount) : `${count(amount)} tokens`)
  const byDay = days
    .map((day, i) => ({ day, sum: sumOf(series.flatMap(({ days: each }) => each[i] ?? [])) }))
    .filter(({ sum }) => sum.requests > 0)
    .reverse()
  const title = by === 'model' ? 'Model' : 'Group'
  return (
    <section className="box">
      <h2>Usage</h2>
      <div className="filters">
        <Select
          label="Period"
          value={query.days}
          all="Last 30 days"
          options={[
            ['7', 'Last 7 days'],
            ['90', 'Last 90 days'],
          ]}
          change={days => filter({ days })}
        />
        <Select
          label="By"
          value={query.by}
          all="By model"
          options={[['group', 'By group']]}
          change={by => filter({ by })}
        />
        <Select
          label="Measure"
          value={query.measure}
          all="Tokens"
          options={[['cost', 'Cost']]}
          change={measure => filter({ measure })}
        />
      </div>
      <Waiting value={value} error={error} />
      {value && series.length === 0 && (
        <Empty icon="models" title="No model requests">
          <p>No agent asked a model in this period.</p>
        </Empty>
      )}
      {series.length > 0 && measure === 'cost' && charted.series.length === 0 && (
        <p className="hint">
          These models have no price. Set prices in <code>usage.prices</code> of the configuration.
        </p>
      )}
      {charted.series.length > 0 && <UsageChart charted={charted} measure={measure} written={written} />}
      {series.length > 0 && (
        <>
          <Figures
            title={title}
            rows={series
              .toSorted((a, b) => b.sum.input + b.sum.output - a.sum.input - a.sum.output)
              .map(({ name, sum }) => ({ name: name === '' ? '(not named)' : shortly(name, 60), sum }))}
            money={money}
          />
          <details>
            <summary>By day</summary>
            <Figures
              title="Day (UTC)"
              rows={byDay.map(({ day, sum }) => ({ name: dayOf(day), sum }))}
              money={money}
            />
          </details>
        </>
      )}
    </section>
  )
}

interface FiguresProps {
  title: string
  rows: readonly { name: string; sum: Amounts }[]
  money: (amount: number) => string
}

const Figures = ({ title, rows, money }: FiguresProps) => (
  <table className="table usage">
    <Columns names={[title, 'Requests', 'Tokens in', 'Of it cached', 'Tokens out', 'Cost']} />
    <tbody>
      {rows.map(({ name, sum }) => (
        <tr key={name}>
          <td>{name}</td>
          <td data-name="Requests">{count(sum.requests)}</td>
          <td data-name="Tokens in">{count(sum.input)}</td>
          <td data-name="Of it cached">{count(sum.cached)}</td>
          <td data-name="Tokens out">{count(sum.output)}</td>
          <td data-name="Cost">{sum.cost === undefined ? '–' : money(sum.cost)}</td>
        </tr>
      ))}
    </tbody>
  </table>
)

function LimitsSection() {
  const { value } = useAnswer<Limits>('/api/host/usage/limits', ['runs'])
  if (!value?.length) return null
  return (
    <section className="box">
      <h2>Limits</h2>
      <table className="table usage">
        <Columns names={['Group', 'Limit', 'Used', 'Of']} />
        <tbody>
          {value.map(({ group, limit, used, most }) => (
            <tr key={`${group}/${limit}`}>
              <td>{group === null ? 'all together' : visible(group)}</td>
              <td data-name="Limit">{limit}</td>
              <td data-name="Used">{count(used)}</td>
              <td data-name="Of">{count(most)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}
