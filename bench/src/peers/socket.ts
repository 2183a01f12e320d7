import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { startChild } from '../children.ts'
import { type Method, openMailbox, receiverIn } from '../mailbox.ts'

export const socketMethod: Method = {
  name: 'unix socket',
  how: 'lines of JSON, kept nowhere',
  async open(base, { ledger }) {
    const path = join(base, 'lines.sock')
    const file = new URL('./socket.process.ts', import.meta.url)
    return openMailbox({
      receive() {
        rmSync(path, { force: true })
        return receiverIn(startChild(file, 'unix socket'), { path, ledger })
      },
      writer: startChild(file, 'unix socket: writer'),
      ownWriter: true,
      to: { path },
      ledger,
    })
  },
}
