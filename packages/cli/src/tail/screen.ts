import { writeSync } from 'node:fs'

const enter = '\u001b[?1049h\u001b[?25l\u001b[?7l\u001b[2J'
const leave = '\u001b[0m\u001b[?7h\u001b[?25h\u001b[?1049l'
/** Terminals that support it show the whole text at once; others ignore it. */
const atOnce = (text: string) => `\u001b[?2026h${text}\u001b[?2026l`

/** What to write so that a screen changes from `before` to `now`: only the lines that differ. */
export function changesOf(before: readonly string[], now: readonly string[]): string {
  let text = ''
  for (let i = 0; i < Math.max(before.length, now.length); i++) {
    const line = now[i] ?? ''
    if (line !== (before[i] ?? '')) text += `\u001b[${i + 1};1H\u001b[2K${line}`
  }
  return text
}

/** The terminal's alternate screen, in raw mode. However the process ends, the terminal is restored. */
export interface Screen {
  draw(lines: readonly string[]): void
  /** the next `draw` writes every line */
  clear(): void
  open(): void
  close(): void
}

export function createScreen(input: NodeJS.ReadStream, output: NodeJS.WriteStream & { fd: number }): Screen {
  let isOpen = false
  let shown: readonly string[] = []
  /** Synchronously, because it may be the last thing this process does. */
  const restore = () => {
    if (!isOpen) return
    isOpen = false
    try {
      writeSync(output.fd, leave)
    } catch (error) {
      // The terminal was closed, and needs no restoring.
      if (!(error instanceof Error && 'code' in error)) throw error
    }
  }
  process.on('exit', restore)
  return {
    draw(lines) {
      if (!isOpen) return
      const text = changesOf(shown, lines)
      shown = [...lines]
      if (text !== '') output.write(atOnce(text))
    },
    clear() {
      shown = []
      if (isOpen) output.write('\u001b[2J')
    },
    open() {
      input.setRawMode(true)
      input.resume()
      shown = []
      isOpen = true
      output.write(enter)
    },
    close() {
      restore()
      input.pause()
      input.setRawMode(false)
    },
  }
}
