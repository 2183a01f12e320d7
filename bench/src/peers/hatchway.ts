import { join } from 'node:path'
import type { Child } from '../children.ts'
import type { Absent, Contender } from '../contenders.ts'
import {
  type Durability,
  directoryOf,
  type Hatchway,
  type HatchwayOptions,
  journalled,
  refuseRefusals,
  registerWithHatchway,
  startHatchway,
} from '../hatchway.ts'
import { type Method, openMailbox } from '../mailbox.ts'
import { idleGap } from '../post.ts'
import { asStamps } from '../stamps.ts'
import { relayContender } from './relay.ts'

export const hatchwayName = (durability: Durability) => `Hatchway ${durability}`

export interface Opened {
  hatchway: Hatchway
  options: HatchwayOptions
  end(): Promise<void>
}

/** A daemon, with one group unless more are wanted, ready to be measured; or why there is none. */
export const openHatchway = async (
  base: string,
  durability: Durability,
  groups = 1,
  more: Partial<Pick<HatchwayOptions, 'services'>> = {},
): Promise<Absent | Opened> => {
  const options: HatchwayOptions = {
    data: join(base, `hatchway-${durability}`),
    durability,
    groups,
    dialect: 'hatchway',
    quotas: 'default',
    record: 'names',
    ...more,
  }
  await registerWithHatchway(options)
  const hatchway = await startHatchway(options)
  await hatchway.ready()
  const end = async () => {
    await hatchway.stop()
    refuseRefusals(options.data)
  }
  return { hatchway, options, end }
}

/** Idle latency of a running daemon: renamed → committed. */
export const latencyContender = ({ hatchway, options, end }: Opened, producer: Child): Contender => {
  const directories = [directoryOf(options.data, 0, 'messages')]
  return relayContender({
    name: hatchwayName(options.durability),
    send: async count => asStamps(await producer.call('trickle', { directories, count, gap: idleGap })),
    take: hatchway.committed,
    end,
  })
}

const promises: Record<Durability, string> = {
  process: 'committed, survives the end of the process',
  full: 'committed and synced, survives a power cut',
}

/** Hatchway as one method among others, with NanoClaw's files. */
export const hatchwayMethod = (durability: Durability): Method => ({
  name: hatchwayName(durability),
  how: promises[durability],
  async open(base, { producer, ledger }) {
    const options: HatchwayOptions = {
      data: join(base, `hatchway-${durability}`),
      durability,
      groups: 1,
      dialect: 'nanoclaw',
      quotas: 'default',
      record: 'names',
      ...(ledger === undefined ? {} : { ledger }),
    }
    await registerWithHatchway(options)
    return openMailbox({
      async receive() {
        const hatchway = await startHatchway(options)
        await hatchway.ready()
        return {
          pid: hatchway.pid,
          take: hatchway.committed,
          kill: hatchway.kill,
          async end() {
            await hatchway.stop()
            refuseRefusals(options.data)
          },
        }
      },
      writer: producer,
      to: { directories: [directoryOf(options.data, 0, 'messages')] },
      ledger,
      handled: () => journalled(options.data),
    })
  },
})
