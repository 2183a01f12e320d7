import { z } from 'zod'

/** Chat apps are added with `channels add`, not in the configuration: their settings are secrets, and come and go. */
export const channelsSchema = z.strictObject({
  assistant: z.string().default('Hatch').describe('what people call the assistant').meta({ internal: true }),
})

export type ChannelsSettings = z.output<typeof channelsSchema>
