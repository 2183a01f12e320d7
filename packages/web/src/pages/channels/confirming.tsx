import type { ChannelState } from '@hatchway/host/api-types'
import { useMemo } from 'react'
import { encode } from 'uqr'

interface ConfirmingProps {
  title: string
  confirm: NonNullable<ChannelState['confirm']>
}

/** What an operator scans or types in the app. */
export function Confirming({ title, confirm: { kind, value } }: ConfirmingProps) {
  if (kind === 'code')
    return (
      <p>
        Type this code in {title}: <code>{value}</code>
      </p>
    )
  return (
    <figure className="qr">
      <QrCode value={value} />
      <figcaption className="hint">
        Scan this with {title} on your phone. It changes from time to time.
      </figcaption>
    </figure>
  )
}

function QrCode({ value }: { value: string }) {
  const { size, path } = useMemo(() => {
    const { data, size } = encode(value, { border: 4 })
    const dark = data.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : [])))
    return { size, path: dark.join('') }
  }, [value])
  return (
    <svg role="img" aria-label="QR code" viewBox={`0 0 ${size} ${size}`} shapeRendering="crispEdges">
      <rect width={size} height={size} fill="white" />
      <path d={path} fill="black" />
    </svg>
  )
}
