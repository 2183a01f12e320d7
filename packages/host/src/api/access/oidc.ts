import { randomBytes } from 'node:crypto'
import { refusal } from '@hatchway/protocol'
import type { Configuration } from 'openid-client'
import type { WebSettings } from '../../config/web.ts'
import { ApiError } from '../failure.ts'
import { roleByClaims } from './access.ts'

/**
 * Signing in with an OpenID Connect provider: the authorization code flow with PKCE. What one attempt needs to be told
 * from another stays here, under a key that only the browser which began it knows; the library checks the rest.
 */
export interface Oidc {
  /** where the browser is sent, and what it has to bring back */
  begin(callback: string): Promise<{ key: string; url: string }>
  /** `url` is what it was sent back to */
  finish(key: string, url: string): Promise<{ name: string; claims: string[] }>
}

interface Attempt {
  verifier: string
  state: string
  nonce: string
  callback: string
  endsAt: number
}

export const attemptMs = 600_000
const mostAttempts = 500
const patienceS = 10

const refused = (message: string) => new ApiError(refusal('forbidden', message), 401)

export function createOidc(options: {
  oidc: WebSettings['oidc']
  environment: NodeJS.ProcessEnv
  now(): number
}): Oidc | undefined {
  const { oidc, environment, now } = options
  const { issuer, clientId, clientSecretVariable } = oidc
  if (issuer === undefined || clientId === undefined) return undefined
  const attempts = new Map<string, Attempt>()
  let discovered: Promise<Configuration> | undefined

  /** Loaded, and the provider asked, when somebody first wants to sign in; asked again if that failed. */
  const discover = async () => {
    const client = await import('openid-client')
    const secret = clientSecretVariable === undefined ? undefined : environment[clientSecretVariable]
    if (clientSecretVariable !== undefined && !secret) {
      throw new ApiError(refusal('unavailable', `The variable ${clientSecretVariable} is not set.`))
    }
    const authentication = secret === undefined ? client.None() : client.ClientSecretPost(secret)
    const isPlain = new URL(issuer).protocol === 'http:'
    return client.discovery(new URL(issuer), clientId, undefined, authentication, {
      timeout: patienceS,
      // Only what the configuration itself names without TLS.
      execute: isPlain ? [client.allowInsecureRequests] : [],
    })
  }
  const provider = () => {
    discovered ??= discover().catch(error => {
      discovered = undefined
      if (error instanceof ApiError) throw error
      throw new ApiError(
        refusal('unavailable', `The provider ${issuer} cannot be asked (${nameOf(error)}). Try again later.`),
      )
    })
    return discovered
  }

  const forgetOld = () => {
    for (const [key, { endsAt }] of attempts) {
      if (endsAt > now() && attempts.size < mostAttempts) break
      attempts.delete(key)
    }
  }

  return {
    async begin(callback) {
      const config = await provider()
      const client = await import('openid-client')
      forgetOld()
      const key = randomBytes(32).toString('base64url')
      const attempt: Attempt = {
        verifier: client.randomPKCECodeVerifier(),
        state: client.randomState(),
        nonce: client.randomNonce(),
        callback,
        endsAt: now() + attemptMs,
      }
      attempts.set(key, attempt)
      const url = client.buildAuthorizationUrl(config, {
        redirect_uri: callback,
        scope: oidc.scope,
        state: attempt.state,
        nonce: attempt.nonce,
        code_challenge: await client.calculatePKCECodeChallenge(attempt.verifier),
        code_challenge_method: 'S256',
      })
      return { key, url: url.href }
    },
    async finish(key, url) {
      const attempt = attempts.get(key)
      // It works once, whatever comes of it.
      attempts.delete(key)
      if (!attempt || attempt.endsAt <= now()) throw refused('This attempt is over. Sign in again.')
      const config = await provider()
      const client = await import('openid-client')
      const returned = new URL(attempt.callback)
      returned.search = new URL(url).search
      const tokens = await client
        .authorizationCodeGrant(config, returned, {
          pkceCodeVerifier: attempt.verifier,
          expectedState: attempt.state,
          expectedNonce: attempt.nonce,
          idTokenExpected: true,
        })
        .catch((error: unknown) => {
          throw refused(`The provider did not let you in (${nameOf(error)}).`)
        })
      const said = tokens.claims()
      if (!said) throw refused('The provider did not say who you are.')
      const told =
        said[oidc.claim] === undefined
          ? { ...said, ...(await client.fetchUserInfo(config, tokens.access_token, said.sub)) }
          : said
      const claims = valuesOf(told, oidc.claim)
      if (roleByClaims(oidc, claims) === undefined) {
        throw refused('You are known to the provider, but nobody has given you a role here.')
      }
      return { name: displayName(told, said.sub), claims }
    },
  }
}

/** An address that nobody has verified may be anybody's. */
function valuesOf(told: Readonly<Record<string, unknown>>, claim: string): string[] {
  if (claim === 'email' && told.email_verified !== true) return []
  return [told[claim]].flat().filter(value => typeof value === 'string')
}

const displayName = (told: Readonly<Record<string, unknown>>, subject: string): string => {
  const email = told.email_verified === true ? told.email : undefined
  const name = typeof email === 'string' && email !== '' ? email : subject
  return name.slice(0, 100).toWellFormed()
}

/** What it was, without what it quotes. */
const nameOf = (error: unknown): string =>
  error instanceof Error && 'error' in error && typeof error.error === 'string'
    ? error.error
    : error instanceof Error && 'code' in error && typeof error.code === 'string'
      ? error.code
      : error instanceof Error
        ? error.name
        : 'unknown'
