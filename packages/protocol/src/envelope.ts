import { z } from 'zod'
import { commandSchema } from './commands.ts'
import { requestIdSchema } from './identifiers.ts'

/** The versions of the protocol that are spoken here. */
export const versions: readonly unknown[] = [1]

/** What version 1 puts around a command. */
export const envelopeFields = z.strictObject({
  version: z.literal(1),
  id: requestIdSchema.describe(
    'chosen by the writer, a UUIDv7 by preference; the answer goes to responses/{id}.json',
  ),
  sent_at: z.iso.datetime({ offset: true }).optional(),
})

export const envelopeSchema = envelopeFields.and(commandSchema)
