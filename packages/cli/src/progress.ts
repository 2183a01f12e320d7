/**
 * For work that takes more than a second: one line on standard error that says what is happening and for how long. It
 * disappears afterwards. Only a terminal gets it, never a log or a pipe.
 */
const patienceMs = 1000
const stepMs = 200
const clearLine = '\r\u001b[K'

/** `say` replaces the text; an empty one removes the line, so that something else can be printed. */
export async function withProgress<T>(
  text: string,
  work: (say: (text: string) => void) => Promise<T>,
  output: NodeJS.WriteStream = process.stderr,
): Promise<T> {
  if (!output.isTTY) return work(() => {})
  const startedAt = performance.now()
  let said = text
  let shown = ''
  const show = () => {
    const elapsed = performance.now() - startedAt
    if (elapsed < patienceMs || said === '') return
    const line = `${said}, ${Math.floor(elapsed / 1000)} s`.slice(0, Math.max(0, (output.columns || 80) - 1))
    if (line !== shown) output.write(clearLine + line)
    shown = line
  }
  const hide = () => {
    if (shown !== '') output.write(clearLine)
    shown = ''
  }
  const timer = setInterval(show, stepMs)
  try {
    return await work(next => {
      said = next
      if (said === '') hide()
    })
  } finally {
    clearInterval(timer)
    hide()
  }
}
