import { type ModelApis, serveModelApis } from '../../../packages/testing/src/agents/model-apis.ts'
import { serve } from '../serve.ts'
import { asText } from '../shape.ts'

/** The same model for both: it has a file written, then says that it is done. */
const model: Parameters<typeof serveModelApis>[0] = ({ said }) =>
  said.at(-1)?.role === 'tool'
    ? { text: 'It is written.' }
    : { calls: [{ name: 'write_file', input: { path: 'note.txt', text: 'stretch' } }] }

let onPort: ModelApis | undefined
let onSocket: ModelApis | undefined

serve({
  async begin(socket) {
    onPort = await serveModelApis(model)
    onSocket = await serveModelApis(model, { socket: asText(socket) })
    return onPort.url
  },
  async end() {
    await onPort?.close()
    await onSocket?.close()
  },
})
