import { expect, test } from 'vitest'
import { hrefOf, routeOf } from './route.ts'

test('an address leads to the same place that it was made of', () => {
  for (const [page, id, query] of [
    ['overview', undefined, {}],
    ['chat', 'web:a/b?c#d e', {}],
    ['traffic', '42', { group: 'main', type: 'send_message', decision: 'refused' }],
    ['audit', undefined, { q: 'a&b=c ü' }],
  ] as const) {
    expect(routeOf(hrefOf(page, id, query))).toEqual({ page, id, query })
  }
})

test('what nobody made leads somewhere all the same', () => {
  expect(routeOf('')).toEqual({ page: 'overview', id: undefined, query: {} })
  expect(routeOf('#/chat/%E0%A4%A')).toEqual({ page: 'chat', id: '%E0%A4%A', query: {} })
  expect(routeOf('#/x/')).toEqual({ page: 'x', id: undefined, query: {} })
})
