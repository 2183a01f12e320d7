/** Node 22.21 and 24.5 brought proxies for HTTP agents (`proxyEnv`); an older one ignores them, and people have to know. */
export function ignoredProxy(env: NodeJS.ProcessEnv): string | undefined {
  const name = ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy'].find(one => env[one])
  if (name === undefined || process.allowedNodeEnvironmentFlags.has('--use-env-proxy')) return undefined
  return `${name} is set, but Node ${process.versions.node} cannot reach a model through a proxy. Use Node 22.21, 24.5 or newer.`
}
