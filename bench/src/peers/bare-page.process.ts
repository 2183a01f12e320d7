import { createServer, type ServerResponse } from 'node:http'
import { serve } from '../serve.ts'

/** As little as a page can be: a line of text, and one more for each event. */
const page = `<!doctype html>
<meta charset="utf-8"><title>bare</title><link rel="icon" href="data:,"><p>A line of text</p><ol></ol>
<script>
  new EventSource('/events').onmessage = ({ data }) => {
    const link = document.createElement('a')
    link.href = '#' + data
    link.textContent = data
    document.querySelector('ol').appendChild(document.createElement('li')).append(link)
  }
</script>`

const readers = new Set<ServerResponse>()
let sent = 0

const server = createServer((request, response) => {
  if (request.url !== '/events') {
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(page)
    return
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
  readers.add(response)
  response.on('close', () => readers.delete(response))
})

serve({
  begin: () =>
    new Promise(resolve => {
      server.listen(0, '127.0.0.1', () => {
        const address = server.address()
        resolve(typeof address === 'object' ? address?.port : undefined)
      })
    }),
  /** an event for everybody; gives the moment before it is written */
  send() {
    const at = process.hrtime.bigint()
    for (const reader of readers) reader.write(`data: ${++sent}\n\n`)
    return at
  },
})
