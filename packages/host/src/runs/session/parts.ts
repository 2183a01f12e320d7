import type { SafeCalls } from './safe-calls.ts'
import type { SandboxRun } from './sandbox-run.ts'
import type { Transcript } from './transcript.ts'
import type { TurnLedger } from './turn-ledger.ts'
import type { RunReport, SessionOptions } from './types.ts'

/** What the parts of one session share. */
export interface SessionParts {
  options: SessionOptions
  ledger: TurnLedger
  report: RunReport
  sandbox: SandboxRun
  transcript: Transcript
  calls: SafeCalls
  /** names the run in log lines */
  about: { group: string; run: string }
  isTask: boolean
  /** whether the agent can get no more follow-ups */
  isCutOff(): boolean
}
