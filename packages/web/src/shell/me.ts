import type { Me, Role } from '@hatchway/host/api-types'
import { createContext, useContext } from 'react'

const ranks: Readonly<Record<Role, number>> = { viewer: 0, approver: 1, admin: 2 }

export const MeContext = createContext<Me>({ name: '', role: 'viewer', csrf: '' })

/** What somebody may not do is not offered; the host refuses it anyway. */
export function useMay(needed: Role): boolean {
  return ranks[useContext(MeContext).role] >= ranks[needed]
}
