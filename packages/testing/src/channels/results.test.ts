import { expect, test } from 'vitest'
import { kinds } from '../../../host/src/plugins/channels/kinds.ts'
import { inOrder, resultsOf } from './results.ts'

test.each(kinds)('the suite has seen all that $title is said to do', ({ name, does }) => {
  expect(resultsOf(name)).toEqual(inOrder(does))
})
