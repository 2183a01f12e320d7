/** What the hostile agent is told in its prompt: which attacks, for how long. */
export interface Orders {
  turn: number
  attacks: readonly string[]
  seconds: number
  seed: number
}

export const goodWord = 'be good'
export const goodAnswer = 'I am good'
const mark = 'HOSTILE'

/** In letters that no prompt has to quote. */
export const orderText = (orders: Orders) =>
  `${mark}${Buffer.from(JSON.stringify(orders)).toString('base64url')}${mark}`

export function ordersIn(prompt: string): Orders | undefined {
  const said = prompt.split(mark).at(-2)
  if (said === undefined) return undefined
  const { turn, attacks, seconds, seed }: Orders = JSON.parse(Buffer.from(said, 'base64url').toString())
  return { turn, attacks, seconds, seed }
}
