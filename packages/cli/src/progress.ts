/**
 * For what takes more than a second: one line on standard error that says what is done and for how long, gone without a
 * trace afterwards. Only on a terminal, where it can be taken back; a log or a pipe never sees it.
 */
const patienceMs = 1000
const stepMs = 200
const clearLine = '\r\u001b[K'

/** `say` replaces what is said; nothing: the line goes away, for something else to be printed. */
export async function withProgress<T>(
  text: string,
  work: (say: (text: string) => void) => Promise<T>,
  output: NodeJS.WriteStream = process.stderr,
): Promise<T> {
  if (!output.isTTY) return work(() => {})
  const begunAt = performance.now()
  let said = text
  let shown = ''
  const show = () => {
    const elapsed = performance.now() - begunAt
    if (elapsed < patienceMs || said === '') return
    const line = `${said}, ${Math.floor(elapsed / 1000)} s`.slice(0, Math.max(0, (output.columns || 80) - 1))
    if (line !== shown) output.write(clearLine + line)
    shown = line
  }
  const hide = () => {
    if (shown !== '') output.write(clearLine)
    shown = ''
  }
  const showing = setInterval(show, stepMs)
  try {
    return await work(next => {
      said = next
      if (said === '') hide()
    })
  } finally {
    clearInterval(showing)
    hide()
  }
}
