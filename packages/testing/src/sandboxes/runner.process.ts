// A host of its own for one run, so that a test can be somebody else, or end it by force.
// Started with one argument, a JSON document: {sandbox, options, spec}. The three streams are the run's; what became
// of it is written to descriptor 3, one JSON document a line.
import { writeSync } from 'node:fs'
import { configSchema } from '../../../host/src/config.ts'
import { createSandboxes } from '../../../host/src/sandboxes/choose.ts'
import type { OciOptions } from '../../../host/src/sandboxes/oci.ts'
import type { SandboxName, SandboxSpec } from '../../../host/src/sandboxes/types.ts'

export interface Errand {
  sandbox: SandboxName
  options: OciOptions
  spec: SandboxSpec
}

const errand: Errand = JSON.parse(process.argv[2] ?? '')
const { options } = errand
const sandboxes = createSandboxes(configSchema.parse({}), {
  docker: options,
  podman: options,
  ...(options.graceMs === undefined ? {} : { graceMs: options.graceMs }),
})
const send = (document: object) => writeSync(3, `${JSON.stringify(document)}\n`)

const started = await sandboxes[errand.sandbox].start({
  ...errand.spec,
  image: errand.spec.image,
  command: errand.spec.command,
})
process.on('SIGTERM', () => started.kill().then(() => process.exit(0)))
process.stdin.pipe(started.stdin)
started.stdout.pipe(process.stdout)
started.stderr.pipe(process.stderr)
send({ name: started.name })
send({ exit: await started.exited })
