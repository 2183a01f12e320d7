import { contextModeSchema, scheduleTypeSchema } from '@hatchway/protocol'
import { z } from 'zod'

/** How a model is told to write a schedule. The rules themselves are the host's. */
export const scheduleType = scheduleTypeSchema.describe(
  'cron: again and again by the calendar. interval: again and again after a fixed time. once: a single time.',
)

export const scheduleValue = (zone: string) =>
  z
    .string()
    .describe(
      'By schedule_type. ' +
        `cron: five fields (minute hour day-of-month month day-of-week), read in ${zone}: "0 9 * * 1-5" is 9:00 on weekdays. ` +
        'interval: whole milliseconds in digits, 1000 to 31536000000: "300000" is every five minutes. ' +
        `once: a time in the future in ISO 8601, "2030-01-31T09:30:00" in ${zone}, or with an offset behind it ` +
        '("2030-01-31T08:30:00Z", "2030-01-31T09:30:00+01:00").',
    )

export const timezone = (otherwise: string) =>
  z.string().optional().describe(`IANA name, such as Europe/Berlin. Left out: ${otherwise}.`)

export const contextMode = contextModeSchema.describe(
  'group: the run continues this group’s conversation and knows what was said. isolated: it begins afresh and knows ' +
    'only the prompt, so the prompt must say everything.',
)
