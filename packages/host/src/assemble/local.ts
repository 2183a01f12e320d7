import { Readable } from 'node:stream'
import { refusal } from '@hatchway/protocol'
import { createApi } from '../api/app.ts'
import { ApiError, failureAnswer } from '../api/failure.ts'
import type { Transport } from '../client/transport.ts'
import type { Config } from '../config.ts'
import { openHost } from './host.ts'

const onlyDaemon = async (): Promise<never> => {
  throw new ApiError(refusal('unavailable', 'Files go through a daemon, and none is running.'))
}

/** No daemon runs: this process is the host for as long as it takes. Files are not taken meanwhile. */
export async function openLocal(config: Config): Promise<Transport> {
  // A command's standard error is for its own sentence; what the host notes in passing is not for whoever types it.
  const quiet: Config = config.logLevel === 'silent' ? config : { ...config, logLevel: 'error' }
  const host = await openHost(quiet, { watch: false })
  const app = createApi(host)
  return {
    daemon: false,
    async request(method, path, body) {
      const response = await app.request(path, {
        method,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      return { status: response.status, text: await response.text() }
    },
    upload: onlyDaemon,
    async download(path) {
      const response = await app.request(path)
      if (response.status === 200 && response.body) return Readable.from(response.body, { objectMode: false })
      if (response.status === 404) return onlyDaemon()
      throw new ApiError(failureAnswer.parse(await response.json()).error)
    },
    lines: async () => {},
    close: () => host.stop(),
  }
}
