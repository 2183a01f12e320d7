import type { Verdict } from '../../base/taint.ts'
import type { InspectorSettings } from '../../config/inspector.ts'
import { createCalls } from './calls.ts'
import { askModel } from './model.ts'
import { type Prompt, promptForAction, promptForText } from './prompt.ts'
import { type Judgement, judgeAction, judgeText, mostRead } from './rules.ts'
import type { Inspector } from './types.ts'

export interface InspectorOptions {
  settings: InspectorSettings
  /** where the key is */
  environment: NodeJS.ProcessEnv
  now?(): number
}

/**
 * Rules first, then the model, if there is one, for what they leave open. The model can only decide what the rules do
 * not: what they deny it is not even asked about.
 */
export function createInspector({ settings, environment, now = Date.now }: InspectorOptions): Inspector {
  const { model: name, url, keyVariable, timeoutMs, cacheMinutes } = settings
  const calls = createCalls({ timeoutMs, cacheMs: cacheMinutes * 60_000, now })

  const further = async (
    judgement: Judgement,
    group: string,
    promptOf: () => Prompt,
    signal: AbortSignal,
  ): Promise<Verdict> => {
    signal.throwIfAborted()
    const { isFinal, ...verdict } = judgement
    if (isFinal || name === undefined) return verdict
    const prompt = promptOf()
    // Spelled out, it can be longer than it was.
    if (prompt.document.length > 2 * mostRead) return verdict
    const model = { name, url, key: environment[keyVariable] ?? '' }
    const answer = await calls.ask(
      {
        content: [name, prompt.system, prompt.document],
        group,
        by: name,
        call: hungUp => askModel(model, prompt, hungUp),
      },
      signal,
    )
    return answer.verdict === 'unsure' ? { ...answer, reason: `${answer.reason} ${verdict.reason}` } : answer
  }

  return {
    inspect: (question, signal) =>
      further(judgeAction(question), question.action.group, () => promptForAction(question), signal),
    inspectText: (text, about, signal) =>
      further(judgeText(text), '', () => promptForText(text, about), signal),
  }
}
