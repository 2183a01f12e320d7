/** Each may do what the one before may: look; answer and decide; everything. */
export const roles = ['viewer', 'approver', 'admin'] as const
export type Role = (typeof roles)[number]
