import { z } from 'zod'
import type { PluginApi } from '../plugin-api/types.ts'
import type { Client } from './client.ts'

const anything = z.unknown()

/** The API as a plugin's command uses it: a stranger's routes have answers that only the plugin knows. */
export const pluginApi = (client: Client, print: PluginApi['print']): PluginApi => ({
  print,
  async request(method, path, body) {
    switch (method) {
      case 'GET':
        return client.get(path, anything)
      case 'POST':
        return client.post(path, body, anything)
      case 'PATCH':
        return client.patch(path, body, anything)
      case 'DELETE':
        return client.delete(path, anything)
    }
  },
})
