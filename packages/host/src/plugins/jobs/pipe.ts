import { execFile } from 'node:child_process'
import { closeSync, constants, mkdtempSync, openSync, rmSync } from 'node:fs'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

/**
 * A pipe whose writing end a program can have as both its outputs, so that what it prints stays in order. The runtime
 * itself gives programs sockets, which /dev/stdout and /dev/stderr cannot be opened on.
 */
export interface OutputPipe {
  /** for the program; to be closed here once it has it */
  writing: number
  reading: Socket
  closeWriting(): void
  close(): void
}

const call = promisify(execFile)

export async function openOutputPipe(): Promise<OutputPipe> {
  // Nobody else reaches it by its name, and whoever has it open may open it again, whatever user that is.
  const directory = mkdtempSync(join(tmpdir(), 'hatchway-job-'))
  try {
    const path = join(directory, 'output')
    await call('mkfifo', ['-m', '666', path])
    const reading = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const writing = openSync(path, constants.O_WRONLY)
    const socket = new Socket({ fd: reading, readable: true, writable: false })
    let isOpen = true
    const closeWriting = () => {
      if (isOpen) closeSync(writing)
      isOpen = false
    }
    return {
      writing,
      reading: socket,
      closeWriting,
      close() {
        closeWriting()
        socket.destroy()
      },
    }
  } finally {
    rmSync(directory, { recursive: true })
  }
}
