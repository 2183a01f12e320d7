import { folderSchema } from '@hatchway/protocol'
import { z } from 'zod'
import { isWithoutPassword, variableName } from '../../config/values.ts'

/**
 * Accounts on calendar servers and who may use them. A password does not belong in the file: the account names the
 * variable of the host's environment that holds it.
 */
const accountSchema = z.strictObject({
  url: z
    .url({ protocol: /^https?$/ })
    .refine(isWithoutPassword, 'must not hold a user or a password; use username and passwordVariable')
    .describe('The address of the CalDAV server, as its provider gives it.'),
  username: z
    .string()
    .min(1)
    .max(256)
    .regex(/^[^:\p{Cc}]*$/u, 'must not hold a ":" or a control character')
    .describe('Who logs in there.'),
  passwordVariable: variableName.describe(
    'The variable of the host’s environment that holds the password. No sandbox sees it.',
  ),
  groups: z
    .union([z.enum(['all', 'main']), z.array(folderSchema)])
    .default('main')
    .describe('Who may use it: `main`, `all`, or a list of folders.'),
  calendars: z
    .array(z.string().min(1).max(256))
    .min(1)
    .optional()
    .describe('The calendars that are shown, by name. Left out: all. The first one is the primary one.'),
  readonly: z.boolean().default(false).describe('Whether events can only be read.'),
})

export const calendarsSchema = z
  .record(
    z
      .string()
      .regex(
        /^[a-z][a-z0-9-]{0,31}$/,
        'must be 1 to 32 small letters, digits and "-", starting with a letter',
      ),
    accountSchema,
  )
  .default({})
  .describe('Calendar accounts that agents may use, by name; see docs/calendar.md. Not in the environment.')
  .meta({ allowed: 'an object of accounts by name', otherwise: 'none' })

export type CalendarAccounts = z.output<typeof calendarsSchema>
export type CalendarAccount = CalendarAccounts[string]
