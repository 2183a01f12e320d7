import { type Refusal, refusal } from '@hatchway/protocol'

/** A file may leave its sender out, but not lie about it. What it claims gives no right either way. */
export const checkSender = (claimedSender: string | undefined, folder: string): Refusal | undefined =>
  claimedSender === undefined || claimedSender === folder
    ? undefined
    : refusal('sender_mismatch', 'The file names another sender than the directory it lies in.')
