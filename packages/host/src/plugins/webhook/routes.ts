import { z } from 'zod'
import { ApiError } from '../../api/failure.ts'
import { bytesOf } from '../../api/requests.ts'
import { type Route, routesOf } from '../../api/route.ts'
import type { WebhookChannel } from './channel.ts'
import { signatureHeader, timestampHeader } from './signature.ts'

const route = routesOf<WebhookChannel>('chat')

export const webhookRoutes: readonly Route<WebhookChannel>[] = [
  route.post('/webhook/:name', {
    summary: 'Say something in a chat of the webhook',
    role: 'anyone',
    params: z.object({ name: z.string() }),
    answer: z.object({ repeated: z.boolean() }),
    async handle(channel, { params: { name }, request }) {
      const accepted = await channel.accept({
        name,
        timestamp: request.req.header(timestampHeader),
        signature: request.req.header(signatureHeader),
        // The signature is of the body as it was sent, byte for byte.
        body: await bytesOf(request.req.raw),
      })
      if (!accepted.ok) throw new ApiError(accepted.error)
      return request.json({ repeated: accepted.repeated }, accepted.repeated ? 200 : 202)
    },
  }),
]
