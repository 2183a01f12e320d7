import { describe, expect, it } from 'vitest'
import type { ReplyAddress } from './dialect.ts'
import { type Outcome, receiptSchema } from './receipts.ts'
import { renderReply } from './reply.ts'
import { content } from './testing.ts'

const done = (result: Record<string, unknown> = {}): Outcome => ({ ok: true, result })
const refused: Outcome = { ok: false, error: { code: 'forbidden', message: 'only main may' } }

const answer = (directory: ReplyAddress['directory'], shape: ReplyAddress['shape'], outcome: Outcome) => {
  const file = renderReply({ directory, id: 'r-1', shape }, outcome)
  expect(file.path).toBe(`${directory}/r-1.json`)
  return content(file)
}

describe('answers', () => {
  it('version 1: a receipt with the id', () => {
    const good = answer('responses', 'receipt', done({ task_id: '7' }))
    expect(good).toEqual({ version: 1, id: 'r-1', ok: true, result: { task_id: '7' } })
    const bad = answer('responses', 'receipt', refused)
    expect(bad).toEqual({
      version: 1,
      id: 'r-1',
      ok: false,
      error: { code: 'forbidden', message: 'only main may' },
    })
    for (const receipt of [good, bad]) expect(receiptSchema.parse(receipt)).toEqual(receipt)
  })

  it('Pynchy’s services and questions: result or error', () => {
    expect(answer('responses', 'result', done({ events: [] }))).toEqual({ result: { events: [] } })
    expect(answer('responses', 'result', refused)).toEqual({ error: 'forbidden: only main may' })
  })

  /** As its container reads an answer to its shell gate: whatever is not clearly a no is a yes there. */
  const runsIn = (outcome: Outcome): { runs: boolean; reason?: unknown } => {
    const response = answer('responses', 'decision', outcome) as Record<string, unknown>
    if (response.error) return { runs: true }
    const { decision = 'allow', reason } = (response.result ?? {}) as Record<string, unknown>
    expect({ decision, reason }).toEqual({ decision: response.decision, reason: response.reason })
    return decision === 'deny' ? { runs: false, reason } : { runs: true }
  }

  it('Pynchy’s shell gate: a decision at both places, and deny unless the word is allow', () => {
    expect(runsIn(done({ decision: 'allow' }))).toEqual({ runs: true })
    expect(runsIn(done({ decision: 'deny', reason: 'sends data out' }))).toEqual({
      runs: false,
      reason: 'sends data out',
    })
    for (const result of [
      {},
      { decision: 'Allow' },
      { decision: true },
      { decision: ['allow'] },
      { allow: true },
    ]) {
      expect(runsIn(done(result))).toEqual({ runs: false })
    }
    expect(runsIn(refused)).toEqual({ runs: false, reason: 'forbidden: only main may' })
    expect(answer('responses', 'decision', done({ decision: 'allow' }))).toEqual({
      decision: 'allow',
      result: { decision: 'allow' },
    })
  })

  it('Pynchy’s merges: success and a message, nothing more', () => {
    expect(answer('merge_results', 'success', done({ message: 'Merged 2 commits', head: 'a1b2' }))).toEqual({
      success: true,
      message: 'Merged 2 commits',
    })
    expect(answer('merge_results', 'success', done())).toEqual({ success: true, message: 'done' })
    expect(answer('merge_results', 'success', refused)).toEqual({
      success: false,
      message: 'forbidden: only main may',
    })
  })

  it('NanoClaw’s skills: success, a message, and data if there is any', () => {
    expect(answer('x_results', 'success', done({ message: 'Posted' }))).toEqual({
      success: true,
      message: 'Posted',
    })
    expect(answer('x_results', 'success', done({ message: 'Posted', url: 'https://x.test/1' }))).toEqual({
      success: true,
      message: 'Posted',
      data: { url: 'https://x.test/1' },
    })
    expect(answer('x_results', 'success', refused)).toEqual({
      success: false,
      message: 'forbidden: only main may',
    })
  })
})
