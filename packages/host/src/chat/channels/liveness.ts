import type { Channel, ChannelStatus } from './types.ts'

/** How a way to people is, for those who operate the host. */
export interface Liveness extends Omit<ChannelStatus, 'confirm'> {
  channel: string
  /** a person has to confirm it in the app; what they confirm it with is for the operator alone, and is not here */
  isToConfirm: boolean
}

/** A platform is away for a moment every now and then: that is no news. */
const warnAfterMs = 30_000

/** Of those channels that can lose their platform. */
export const livenessOf = (channels: readonly Channel[], now: number): Liveness[] =>
  channels.flatMap(channel => {
    const status = channel.status?.()
    if (!status) return []
    const { confirm, limitedUntil, ...found } = status
    const isLimited = limitedUntil !== undefined && limitedUntil > now
    return [
      {
        channel: channel.name,
        ...found,
        ...(isLimited && { limitedUntil }),
        isToConfirm: confirm !== undefined,
      },
    ]
  })

/** What stays on the operator's screen while nobody is heard there. */
export function livenessWarning(all: readonly Liveness[], now: number): string | undefined {
  const lost = all.filter(({ isConnected, since }) => !isConnected && now - since >= warnAfterMs)
  const said = lost.map(({ channel, isToConfirm, lastError }) =>
    isToConfirm
      ? `${channel} waits for you to confirm it: npx hatchway channels add ${channel}`
      : `${channel} is not connected, so nobody is heard there${lastError === undefined ? '.' : `: ${lastError}`}`,
  )
  return said.join(' ') || undefined
}
