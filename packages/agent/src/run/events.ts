import { type RunEvent, recordSeparator } from '@hatchway/protocol'

const longestStep = 20_000
/** what the host takes as one message */
const longestResult = 1_000_000

/** Turns events into lines. A step is for people who look on: what is long is cut, so that no agent floods the host. */
export const eventLine = (event: RunEvent): string => `${recordSeparator}${JSON.stringify(fitting(event))}\n`

function fitting(event: RunEvent): RunEvent {
  if (event.type === 'step') return { ...event, text: cut(event.text, longestStep) }
  if (event.type === 'error') return { ...event, message: cut(event.message, longestStep) }
  if (event.type === 'result' && event.text !== null) {
    return { ...event, text: cut(event.text, longestResult) }
  }
  return event
}

const mark = ' … (cut)'

function cut(text: string, longest: number): string {
  if (text.length <= longest) return text
  const end = longest - mark.length
  // Half a surrogate pair would not be text.
  const whole = /[\ud800-\udbff]/.test(text.charAt(end - 1)) ? end - 1 : end
  return text.slice(0, whole) + mark
}
