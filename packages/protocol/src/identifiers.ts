import { z } from 'zod'

/** Names that go into paths or keys are checked against a pattern before any use. */
const reservedFolders = new Set(['errors', 'global'])

export const folderSchema = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/,
    'must be 1 to 64 letters, digits, "-" or "_", starting with a letter or digit',
  )
  .refine(folder => !reservedFolders.has(folder.toLowerCase()), 'is a reserved name')

const prototypeNames = new Set(['__proto__', 'constructor', 'prototype'])

export const jidSchema = z
  .string()
  .regex(/^[^\s\p{Cc}]{1,256}$/u, 'must be 1 to 256 characters without spaces or control characters')
  .refine(jid => !prototypeNames.has(jid), 'is not a chat')

export const taskIdSchema = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/, 'must be 1 to 128 letters, digits, ".", "_", ":" or "-"')

export const requestIdSchema = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/, 'must be 1 to 128 letters, digits, "-" or "_"')

export const toolNameSchema = z
  .string()
  .regex(/^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,127}$/, 'must be 1 to 128 letters, digits, "_", ".", ":" or "-"')
