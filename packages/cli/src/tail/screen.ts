import { writeSync } from 'node:fs'

const enter = '\u001b[?1049h\u001b[?25l\u001b[?7l\u001b[2J'
const leave = '\u001b[0m\u001b[?7h\u001b[?25h\u001b[?1049l'
/** Terminals that know it show everything between at once; the others do not mind. */
const together = (text: string) => `\u001b[?2026h${text}\u001b[?2026l`

/** What has to be written so that a screen that shows `before` shows `now`: only lines that are other ones. */
export function changesOf(before: readonly string[], now: readonly string[]): string {
  let text = ''
  for (let i = 0; i < Math.max(before.length, now.length); i++) {
    const line = now[i] ?? ''
    if (line !== (before[i] ?? '')) text += `\u001b[${i + 1};1H\u001b[2K${line}`
  }
  return text
}

/** The terminal's other screen, with keys as they are pressed. However we end, the terminal is left as it was. */
export interface Screen {
  draw(lines: readonly string[]): void
  /** nothing of what was drawn is known to be there any more */
  forget(): void
  open(): void
  close(): void
}

export function createScreen(input: NodeJS.ReadStream, output: NodeJS.WriteStream & { fd: number }): Screen {
  let isOpen = false
  let shown: readonly string[] = []
  /** At once, because this may be the last thing that this process does. */
  const restore = () => {
    if (!isOpen) return
    isOpen = false
    try {
      writeSync(output.fd, leave)
    } catch (error) {
      // A terminal that is gone needs no restoring.
      if (!(error instanceof Error && 'code' in error)) throw error
    }
  }
  process.on('exit', restore)
  return {
    draw(lines) {
      if (!isOpen) return
      const text = changesOf(shown, lines)
      shown = [...lines]
      if (text !== '') output.write(together(text))
    },
    forget() {
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
