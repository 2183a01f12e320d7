import { z } from 'zod'
import { openPrivateFiles, type PrivateFiles } from '../../base/private-files.ts'

/** What somebody has added: one file for each channel. */
export type Accounts = PrivateFiles<Account>

const accountSchema = z.object({ kind: z.string(), settings: z.record(z.string(), z.unknown()) })
export type Account = z.output<typeof accountSchema>

export const openAccounts = (folder: string, staging: string): Accounts =>
  openPrivateFiles(folder, { suffix: '.account.json', schema: accountSchema, staging })
