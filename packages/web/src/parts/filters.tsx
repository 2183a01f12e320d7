import { useEffect, useId, useState } from 'react'
import { Icon } from './icon.tsx'
import { shortly } from './text.ts'

/** Filters stand in the address: a view can be kept and given to somebody. */
interface SelectProps {
  label: string
  value: string | undefined
  all: string
  options: readonly (string | readonly [string, string])[]
  change: (value: string | undefined) => void
}

export function Select({ label, value = '', all, options, change }: SelectProps) {
  const id = useId()
  const pairs = options.map(option => (typeof option === 'string' ? ([option, option] as const) : option))
  // What the address names stays to be seen, whether there is such a thing or not.
  const isKnown = value === '' || pairs.some(([name]) => name === value)
  return (
    <div className="filter">
      <label className="unseen" htmlFor={id}>
        {label}
      </label>
      <select id={id} value={value} onChange={event => change(event.target.value || undefined)}>
        <option value="">{all}</option>
        {pairs.map(([name, text]) => (
          <option key={name} value={name}>
            {text}
          </option>
        ))}
        {!isKnown && <option value={value}>{value}</option>}
      </select>
    </div>
  )
}

interface GroupSelectProps extends Pick<SelectProps, 'value' | 'change'> {
  groups: readonly { folder: string; name: string }[]
}

export const GroupSelect = ({ groups, ...rest }: GroupSelectProps) => (
  <Select
    label="Group"
    all="All groups"
    options={groups.map(({ folder, name }) => [folder, shortly(name, 40)] as const)}
    {...rest}
  />
)

const pauseMs = 250

export function SearchBox({
  label,
  value = '',
  change,
}: {
  label: string
  value: string | undefined
  change: (value: string | undefined) => void
}) {
  const id = useId()
  const [text, setText] = useState(value)
  useEffect(() => setText(value), [value])
  useEffect(() => {
    if (text === value) return
    const timer = setTimeout(() => change(text.trim() === '' ? undefined : text), pauseMs)
    return () => clearTimeout(timer)
  }, [text, value, change])
  return (
    <div className="filter search">
      <label className="unseen" htmlFor={id}>
        {label}
      </label>
      <Icon name="search" size={16} />
      <input
        id={id}
        type="search"
        data-search=""
        autoComplete="off"
        maxLength={200}
        placeholder={`${label}  /`}
        value={text}
        onChange={event => setText(event.target.value)}
      />
    </div>
  )
}
