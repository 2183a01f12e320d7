import type { Verdict } from '../../base/taint.ts'
import { findForms } from '../secrets/forms.ts'
import { indexPayload } from '../secrets/payload-index.ts'
import { viewsOf } from '../secrets/views.ts'
import { carriesData } from './carriers.ts'
import { givesOrders } from './phrases.ts'
import type { Question } from './types.ts'

/**
 * The inspector that needs no model. It says
 *
 *   deny     where strangers may have asked for it, and it looks like what they would ask for: a secret, or orders to
 *            another machine, from a context that has read their text; data in a link or in a block nobody can read, from
 *            one that has read secrets too
 *   allow    for a few plain words in a chat, from a context that has read no secrets: plain words can be the secret
 *   unsure   for everything else, also where nothing was noticed: not to have seen something is no proof
 *
 * What it denies stays denied, and what holds a secret or orders goes to a person and to no model: a model must not
 * read the one, and might obey the other.
 */
export interface Judgement extends Verdict {
  /** nobody but a person may say anything else */
  isFinal: boolean
}

const by = 'rules'
const judged = (verdict: Verdict['verdict'], reason: string, isFinal = verdict !== 'unsure'): Judgement => ({
  verdict,
  reason,
  by,
  isFinal,
})

/** characters; more than that is for people, or for nobody */
export const mostRead = 32_768

export function judgeAction({ action, taint }: Question): Judgement {
  const text = textOf([action.summary, action.payload])
  if (text === undefined) return judged('unsure', 'It is too large to be looked at.', true)
  const secret = !findForms(text, 1).next().done
  const orders = givesOrders(text)
  if (secret || orders) {
    const what = secret ? 'It holds what looks like a secret' : 'It holds orders for a machine'
    return taint.corrupted
      ? judged('deny', `${what}, and strangers may have asked for that.`)
      : judged('unsure', `${what}.`, true)
  }
  const carrier = carriesData(text)
  if (carrier !== undefined) {
    return taint.corrupted && taint.secret
      ? judged('deny', `It holds ${carrier}, secrets were read, and strangers may have asked for them.`)
      : judged('unsure', `It holds ${carrier}.`)
  }
  if (!taint.secret && isPlainMessage(action)) return judged('allow', 'It is a few plain words.')
  return judged('unsure', 'The rules cannot tell whether it is harmless.')
}

export function judgeText(text: string): Judgement {
  // An order hidden in base64 is meant for whoever decodes it, which no person does.
  const parts = text.length > mostRead ? [text.slice(0, mostRead), text.slice(-mostRead)] : [text]
  for (const part of parts) {
    if ([part, ...viewsOf(part)].some(givesOrders))
      return judged('deny', 'It gives orders to the machine that reads it.')
  }
  if (text.length > mostRead) return judged('unsure', 'It is too large to be looked at.', true)
  if (isPlain(text)) return judged('allow', 'It is a few plain words.')
  return judged('unsure', 'The rules see no orders to a machine in it, and cannot be certain.')
}

function textOf(content: unknown): string | undefined {
  try {
    if (JSON.stringify(content).length > mostRead) return undefined
    return indexPayload(content, { neighbours: false }).text
  } catch {
    // Nested too deeply, or in a circle.
    return undefined
  }
}

/** A message and nothing else; what other actions do with plain words is not known here. */
const isPlainMessage = ({ name, payload }: Question['action']): boolean => {
  const { jid, text, ...more } = payload
  return (
    name === 'send_message' &&
    Object.keys(more).length === 0 &&
    typeof jid === 'string' &&
    jid.length <= 128 &&
    typeof text === 'string' &&
    isPlain(text)
  )
}

/** No character is of two kinds (ℹ is a letter and a picture): a long row of such would be tried in every way. */
const words =
  /^(?:(?!\p{Extended_Pictographic})\p{L}|(?!\p{Variation_Selector})\p{M}|\p{Extended_Pictographic}\u{fe0f}?|[ \n,;:!?'"’“”()–，。！？、：；「」-]|\.(?!\S)|\d{1,4}(?!\d))*$/u
const mixedScripts =
  /(?=[\p{L}\p{M}]*\p{Script=Latin})(?=[\p{L}\p{M}]*[\p{Script=Cyrillic}\p{Script=Greek}])[\p{L}\p{M}]+/u

/** Short, without links, long words, many digits, or letters that look like others. */
const isPlain = (text: string): boolean =>
  text.length <= 280 &&
  words.test(text) &&
  text.replaceAll(/\D/g, '').length <= 12 &&
  !/[\p{L}\p{M}]{25}/u.test(text) &&
  !mixedScripts.test(text)
