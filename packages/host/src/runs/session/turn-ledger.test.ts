import { expect, test } from 'vitest'
import type { IncomingRow } from '../../store/types.ts'
import { inputId } from '../input-box.ts'
import { createTurnLedger } from './turn-ledger.ts'

const row = (id: number): IncomingRow => ({
  ...{ id, group: 'family', jid: 'family@chat', channel: 'test', externalId: null, sender: 'ada' },
  ...{ senderName: 'Ada', text: `number ${id}`, status: 'given', runId: 'r-1', createdAt: 0 },
})
const first = inputId(1)
const second = inputId(2)
const third = inputId(3)
const own = { ownRunner: true, namesUsed: true }
const unnamed = { ownRunner: false, namesUsed: false }

test('a result answers what the agent has named, and nothing else', () => {
  const ledger = createTurnLedger([row(1), row(2)], own)
  ledger.name([first, 'unknown'])
  const turn = ledger.turn('hello', [second])
  expect(turn).toEqual({ answers: [first], rowIds: [1], doubtful: [] })
  // Until it is stored, the same result gives the same turn.
  expect(ledger.turn('hello', [second])).toEqual(turn)
  ledger.record(turn)
  expect([ledger.openCount(), ledger.isAnswered()]).toEqual([1, false])
  expect(ledger.turn('more', []).answers).toEqual([])
})

test('no later result is about the inputs of a turn that failed', () => {
  const ledger = createTurnLedger([row(1)], own)
  ledger.name([first])
  ledger.turnFailed()
  expect(ledger.turn('hello', []).answers).toEqual([])
  expect(ledger.openCount()).toBe(1)
})

test('a turn about nothing but stopped inputs is known as such, until the next turn', () => {
  const ledger = createTurnLedger([row(1)], own)
  ledger.record(ledger.wholeTurn(), 'stopped')
  ledger.give(row(2), false)
  ledger.name([first])
  expect(ledger.isStopped()).toBe(true)
  ledger.record(ledger.turn(null, []))
  expect(ledger.isStopped()).toBe(false)
  ledger.name([first, second])
  expect(ledger.isStopped()).toBe(false)
  expect(ledger.turn('hello', []).answers).toEqual([second])
})

test('a container that names nothing answers its first inputs, then asides one by one', () => {
  const ledger = createTurnLedger([row(1)], unnamed)
  ledger.give(row(2), true)
  ledger.give(row(3), true)
  const turn = ledger.turn('to the first', [second, third])
  expect(turn).toMatchObject({ answers: [first], doubtful: [second, third] })
  ledger.record(turn)
  // They may have their answer already.
  expect([ledger.openCount(), ledger.isAnswered()]).toEqual([2, true])
  ledger.record(ledger.turn('to the second', [second, third]))
  expect(ledger.openCount()).toBe(1)
  ledger.record(ledger.turn(null, [second, third]))
  expect(ledger.openCount()).toBe(0)
})

test('a container that names nothing has used at its good end what it took', () => {
  const ledger = createTurnLedger([row(1)], unnamed)
  ledger.record(ledger.turn('hello', []))
  ledger.give(row(2), false)
  ledger.give(row(3), false)
  expect(ledger.lastTurn([second]).answers).toEqual([second])
})
