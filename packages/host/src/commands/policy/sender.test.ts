import { expect, test } from 'vitest'
import { checkSender } from './sender.ts'

test('a file that names no sender, or the right one, passes', () => {
  expect(checkSender(undefined, 'family')).toBeUndefined()
  expect(checkSender('family', 'family')).toBeUndefined()
})

test.each(['main', 'Family', 'family-x', 'famil', ' family', 'family\n', '', 'famıly', '../family'])(
  'a file in family that claims to come from %j is refused, and the claim is not repeated',
  claim => {
    const refusal = checkSender(claim, 'family')
    expect(refusal?.code).toBe('sender_mismatch')
    expect(refusal?.message).toBe('The file names another sender than the directory it lies in.')
  },
)
