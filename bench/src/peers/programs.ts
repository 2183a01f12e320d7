import { accessSync, constants } from 'node:fs'
import { connect, createServer } from 'node:net'
import { delimiter, join } from 'node:path'
import { startProgram } from '../children.ts'

/** Debian puts some servers where an ordinary user's PATH does not look. */
const places = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin']

export const findProgram = (name: string): string | undefined =>
  places
    .filter(place => place !== '')
    .map(place => join(place, name))
    .find(path => {
      try {
        accessSync(path, constants.X_OK)
        return true
      } catch (error) {
        if (error instanceof Error && 'code' in error) return false
        throw error
      }
    })

const freePort = () =>
  new Promise<number>((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      const port = typeof address === 'object' && address !== null ? address.port : 0
      server.close(() => resolve(port))
    })
  })

const listens = (port: number) =>
  new Promise<boolean>(resolve => {
    const socket = connect(port, '127.0.0.1')
    const answer = (yes: boolean) => {
      socket.destroy()
      resolve(yes)
    }
    socket.once('connect', () => answer(true))
    socket.once('error', () => answer(false))
  })

/** Starts a server on a free port of the loopback. Another process may take the port in between: then the next one. */
export const startServer = async (path: string, args: (port: number) => string[]) => {
  for (let attempt = 0; attempt < 3; attempt++) {
    const port = await freePort()
    const server = await startProgram(path, args(port), () => listens(port))
    if (server !== undefined) return { ...server, port }
  }
  throw new Error(`${path} does not start`)
}
