import { createInterface } from 'node:readline'

/** A line that is typed at the bottom of the terminal while other text appears above it. */
export function createPrompt() {
  const lines = createInterface({ input: process.stdin, output: process.stdout, prompt: '> ' })
  let isOpen = true
  lines.once('close', () => {
    isOpen = false
  })
  lines.on('SIGINT', () => lines.close())
  const redraw = () => {
    if (isOpen) lines.prompt(true)
  }
  return {
    lines,
    redraw,
    above(text: string): void {
      process.stdout.write(`\r\u001b[J${text}\n`)
      redraw()
    },
    /** who is typing, in front of the line */
    status(text: string): void {
      lines.setPrompt(text === '' ? '> ' : `${text} > `)
      redraw()
    },
    close: () => lines.close(),
  }
}
