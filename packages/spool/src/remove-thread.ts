import { unlinkSync } from 'node:fs'
import { parentPort } from 'node:worker_threads'
import { errorCode } from './directory.ts'

parentPort?.on('message', (paths: readonly string[]) => {
  const problems: string[] = []
  for (const path of paths) {
    try {
      unlinkSync(path)
    } catch (error) {
      if (errorCode(error) !== 'ENOENT')
        problems.push(`A finished file could not be removed from the spool (${errorCode(error)}): ${path}`)
    }
  }
  parentPort?.postMessage({ count: paths.length, problems })
})
